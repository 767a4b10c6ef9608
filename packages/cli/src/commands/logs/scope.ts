import type { ComparedSide, Comparison, Operation } from "@tapedeck/client";
import { isPrintedBy } from "@tapedeck/client/lanes/loop";
import { positionBefore } from "@tapedeck/shared/log/position";
import type { ApiClient, Page } from "../../api/api.ts";
import { CommandError } from "../../command-error.ts";
import { spokenSource } from "../../display/source-name.ts";
import { fullLoopName, namedLoop } from "../../sources/named-loop.ts";
import { oneSource } from "../../sources/named-source.ts";
import { newestToFail } from "../../sources/newest-to-fail.ts";
import type { TextEvent } from "./text-event.ts";

/** Which output is shown: where in the log it is, and which of it there. */
export type Scope = {
  readonly source: string;
  readonly session: string;
  /** Undefined: from the beginning of the session. */
  readonly after: string | undefined;
  /** Undefined: up to now. */
  readonly until?: string;
  readonly has: (event: TextEvent) => boolean;
  /** Only for what failed. */
  readonly failure?: Failure;
};

/** What failed: not every tool says of all its output which step printed it. */
type Failure = {
  /** The line that says why; empty: unknown. */
  readonly cause: string;
  /** What the step printed, from the strictest attribution to the loosest. */
  readonly attributions: readonly ((event: TextEvent) => boolean)[];
};

export type ScopeOptions = {
  readonly what?: string | undefined;
  readonly source?: string | undefined;
  readonly session?: string | undefined;
  readonly loop?: string | undefined;
  readonly failed?: boolean | undefined;
};

/**
 * A session, the newest one of a source, or the output of a loop or of what failed.
 * @throws CommandError if there is no such thing
 */
export async function scopeOf(api: ApiClient, options: ScopeOptions): Promise<Scope> {
  const { what, source, session, failed = false } = options;
  const loop = await loopOf(api, options);
  const of = session !== undefined || loop !== undefined ? undefined : await oneSource(api, what ?? source);
  if (loop === undefined && !failed) return sessionScope(await sessionOf(api, session, of));
  const { left } = await api.get<Comparison>("/api/v1/compare", {
    left: loop ?? session ?? of ?? (await newestToFail(api)),
  });
  if (!failed) return loopScope(api, left);
  if (left.failure === null) throw new CommandError(`nothing has failed in ${nameOf(left)}.`);
  return failureScope(api, left, left.failure);
}

async function loopOf(api: ApiClient, { what, source, loop }: ScopeOptions): Promise<string | undefined> {
  if (loop === undefined) return what === undefined ? undefined : namedLoop(api, what, source);
  const found = await namedLoop(api, loop, what ?? source);
  if (found === undefined)
    throw new CommandError(
      `"${loop}" is no loop: expected 54, alice/shop#54, or a loop as \`tapedeck loops\` lists it.`,
    );
  return found;
}

type Session = { readonly session: string; readonly source: string; readonly startPosition: string };

async function sessionOf(api: ApiClient, session: string | undefined, source: string | undefined): Promise<Session> {
  const chosen = session ?? (await api.get<{ readonly session: string }>("/api/v1/state", { source })).session;
  const { items } = await api.get<Page<Session>>("/api/v1/sessions", { session: chosen, limit: 1 });
  const [found] = items;
  if (found === undefined) throw new CommandError("there is no such session: see `tapedeck sessions`.");
  return found;
}

function sessionScope({ session, source, startPosition }: Session): Scope {
  return { session, source, after: positionBefore(startPosition), has: () => true };
}

/**
 * Skaffold prints on another channel than it reports its steps, and either may be late. So what names the loop is looked for from
 * the loop before to the one after; what an application prints names none, and belongs to the time of the loop.
 */
async function loopScope(api: ApiClient, side: ComparedSide): Promise<Scope> {
  const { session, source, unit, runner, loop, startPosition, position } = side;
  const after = positionBefore(startPosition);
  // What a session printed last may be recorded after its last step.
  if (unit === "session") return { session, source, after, has: () => true };
  if (unit !== "loop") return { session, source, after, until: position, has: () => true };
  const startOf = async (other: number) => {
    const request = { session, kind: "loop", runner, loop: other, limit: 1 };
    const { items } = await api.get<Page<Operation>>("/api/v1/operations", request);
    return items[0]?.startPosition;
  };
  const [before, next, last] = await Promise.all([
    startOf(Math.max(0, loop - 1)),
    startOf(loop + 1),
    startOf(loop + 2),
  ]);
  return {
    session,
    source,
    after: positionBefore(before ?? startPosition),
    ...(last !== undefined && { until: last }),
    has: ({ operation, position: at }) => {
      if (operation && operation.kind !== "") return operation.runner === runner && operation.loop === loop;
      return at >= startPosition && (next === undefined || at < next);
    },
  };
}

async function failureScope(
  api: ApiClient,
  side: ComparedSide,
  { phase: kind, subject, cause }: NonNullable<ComparedSide["failure"]>,
): Promise<Scope> {
  const all = await loopScope(api, side);
  const byStep = ({ detail: { task = "", subtask = "" } = {} }: TextEvent) =>
    isPrintedBy({ task, subtask }, { kind, subject });
  // Builds that run at once share their output.
  const byPhase = ({ detail: { task = "" } = {} }: TextEvent) =>
    isPrintedBy({ task, subtask: subject }, { kind, subject });
  return { ...all, failure: { cause: cause?.text ?? "", attributions: [byStep, byPhase, () => true] } };
}

function nameOf(side: ComparedSide): string {
  return side.unit === "loop" ? `loop ${side.loop} (${fullLoopName(side)})` : spokenSource(side.source);
}
