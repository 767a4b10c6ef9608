import { timeoutSignal } from "@tapedeck/shared/sync/timers";
import { chosenTapedeck } from "../../context/chosen-tapedeck.ts";
import { gatewayUrlText } from "../../gateway-url.ts";
import type { Env } from "./recordable.ts";

export type SessionLines = {
  readonly welcomed: (source: string) => void;
  readonly found: (session: string) => void;
  /** The last words, when all of it is recorded. */
  readonly end: (hurry: AbortSignal) => Promise<void>;
};

/** Nobody waits longer for their prompt than this, for a link. */
const linkPatienceMs = 500;

/**
 * Prints as what a command is recorded, when that is known and at the end: one line for each session, with its place on
 * the page. At the end also where the last failure is.
 */
export function sessionLines(
  url: string | undefined,
  env: Env,
  say: (line: string) => void,
  patienceMs = linkPatienceMs,
): SessionLines {
  const sessions: string[] = [];
  let name = "";
  const page = (path: string) => `${gatewayUrlText(chosenTapedeck(url, env).gateway)}${path}`;
  const lineOf = (session: string) => `${name}, session ${session}: ${page(`/sessions/${session}`)}`;
  return {
    welcomed: (source) => {
      const [, developer = "", project = ""] = source.split("/");
      name = `${developer}/${project}`;
    },
    found: (session) => {
      if (sessions.includes(session)) return;
      sessions.push(session);
      say(`recording as ${lineOf(session)}`);
    },
    end: async (hurry) => {
      for (const session of sessions) say(`recorded as ${lineOf(session)}`);
      const soon = AbortSignal.any([hurry, timeoutSignal(patienceMs)]);
      const failures = await Promise.all(sessions.map((session) => lastFailure(session, url, env, soon)));
      for (const failure of failures) if (failure !== undefined) say(`${failure.what} failed: ${page(failure.path)}`);
    },
  };
}

type Failure = { readonly what: string; readonly path: string };

/** The kinds of failures that have no loop around them. Resources and jobs fail inside of these. */
const steps = [
  "command.finished",
  ...["build", "test", "render", "deploy", "verify", "exec", "check"].map((noun) => `${noun}.failed`),
];

/** From the log, which has it when it is recorded. Undefined also where it can't be read: a recorder's token reads nothing. */
async function lastFailure(
  session: string,
  url: string | undefined,
  env: Env,
  signal: AbortSignal,
): Promise<Failure | undefined> {
  try {
    const { httpBase } = await import("../../gateway-address.ts");
    const { base, headers } = httpBase(url, env);
    const newest = async (kinds: readonly string[]) => {
      const filter = new URLSearchParams({ session, outcome: "failed", last: "1" });
      for (const kind of kinds) filter.append("kind", kind);
      const answer = await fetch(`${base}/api/v1/events?${filter}`, { headers, signal });
      const body = (await answer.json()) as { readonly items?: readonly FailedEvent[] };
      return answer.ok ? body.items?.[0] : undefined;
    };
    const [loop, step] = await Promise.all([newest(["loop.failed"]), newest(steps)]);
    if (loop?.operation !== undefined) return failedLoop(session, loop.operation);
    if (step?.operation === undefined) return undefined;
    const { stepText } = await import("@tapedeck/client/lanes/step");
    const what = stepText({ ...step.operation, instance: "" });
    return { what, path: `/sessions/${session}?at=${step.position}` };
  } catch {
    return undefined;
  }
}

type FailedOperation = {
  readonly kind: string;
  readonly subject: string;
  readonly runner: number;
  readonly loop: number;
};
type FailedEvent = { readonly position: string; readonly operation?: FailedOperation };

function failedLoop(session: string, { runner, loop }: FailedOperation): Failure {
  return { what: `loop ${loop}`, path: `/loops/${session}.${runner}.${loop}` };
}
