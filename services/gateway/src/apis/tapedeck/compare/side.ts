import type { Operation, Session } from "@tapedeck/proto/tapedeck/v1/lists";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { sourceParts } from "@tapedeck/shared/source";
import { compareTimestamps, msBetween } from "@tapedeck/shared/time/timestamp";
import type { CallContext } from "../../../call-context.ts";
import type { QueryClient } from "../../../query-client.ts";
import { nameOf, resolveSource } from "../../resolve-source.ts";
import type { SideName } from "./side-name.ts";

/** A side as the log has it. */
export type Side = {
  readonly session: Session;
  /** The loop or the command that is compared; undefined: the whole session, as of `position`. */
  readonly unit: Operation | undefined;
  /** State and events are those up to here. */
  readonly position: string;
};

export type SideDeps = { readonly query: QueryClient };

/** `at`: the position as of which all is read. */
export type SideContext = Pick<CallContext, "workspace"> & { readonly at: string };

/** Which of a session or a source to compare: its newest one that is over, or the newest one that failed. */
type WhichLoop = "newest" | "failed";

const unitKinds = ["loop", "command"];

/** The steps of Skaffold where it reports no loops: `skaffold build` and `run`, and before v1. */
export const stepKinds = ["init", "build", "test", "render", "deploy", "check", "verify", "exec", "sync"];

/**
 * The loop, command or session that a name means.
 * @throws TapedeckError unknown_source, ambiguous_source, unknown_session, not_found (no such loop), before_first and the
 * errors of query
 */
export async function resolveSide(
  deps: SideDeps,
  context: SideContext,
  name: SideName,
  which: WhichLoop,
): Promise<Side> {
  if (name.type === "loop") return namedLoop(deps, context, name);
  const session =
    name.type === "session" ? await sessionOf(deps, context, name.session) : await sessionAt(deps, context, name);
  // A source's newest session may not have finished a loop yet.
  const of = name.type === "session" ? { sessions: [session.session] } : { sources: [session.source] };
  const request = { ...base(context), ...of, kinds: unitKinds, at: name.at ?? context.at, limit: 1 };
  const over = ["succeeded", "failed", "canceled", "unknown"];
  const failures = { ...request, outcomes: ["failed"] };
  const [failed, step] =
    which === "failed"
      ? await Promise.all([newest(deps, failures), newest(deps, { ...failures, kinds: stepKinds })])
      : [undefined, undefined];
  // A source may have dev loops and one-shots: `skaffold run` may have failed after the newest loop that did.
  const isOneShot = step?.loop === 0 && step.start_position > (failed?.end_position ?? "");
  if (!isOneShot) {
    const unit = failed ?? (await newest(deps, { ...request, outcomes: over })) ?? (await newest(deps, request));
    if (unit !== undefined) return ofUnit(deps, context, unit, session);
  }
  // A one-shot that succeeded may have followed the one that failed.
  const own = step === undefined || step.session === session.session;
  return {
    session: own ? session : await sessionOf(deps, context, step.session),
    unit: undefined,
    position: step?.end_position ?? (await positionOf(deps, context, session, name.at)),
  };
}

/** How many that succeeded are searched for one in which nothing failed. */
const maxGood = 20;

/**
 * The newest good loop of the side's source before the side's own; of commands, one of the same name. Without loops, the
 * newest session in which a step like the one that failed first succeeded before, as of its last good step.
 */
export async function lastGood(deps: SideDeps, context: SideContext, side: Side): Promise<Side | undefined> {
  const { session, unit } = side;
  if (unit === undefined) return lastGoodStep(deps, context, side);
  const { items } = await deps.query.listOperations({
    ...base(context),
    sources: [session.source],
    kinds: [unit.kind],
    outcomes: ["succeeded"],
    at: unit.start_position,
    limit: maxGood,
    ...(unit.kind === "command" && { subjects: [unit.subject] }),
  });
  // Skaffold goes on after a failed sync.
  const good = items.find(({ cause }) => cause === undefined);
  return good && ofUnit(deps, context, good, session);
}

async function lastGoodStep(
  deps: SideDeps,
  context: SideContext,
  { session, position }: Side,
): Promise<Side | undefined> {
  const failed = firstOfRound(await failedSteps(deps, context, session, position));
  if (failed === undefined) return undefined;
  const succeeded = { ...base(context), outcomes: ["succeeded"], at: failed.start_position, limit: 1 };
  const like = { kinds: [failed.kind], ...(failed.subject !== "" && { subjects: [failed.subject] }) };
  const good = await newest(deps, { ...succeeded, ...like, sources: [session.source] });
  if (good === undefined) return undefined;
  // What was built and deployed after it belongs to what was good then.
  const last = (await newest(deps, { ...succeeded, kinds: stepKinds, sessions: [good.session] })) ?? good;
  const of = good.session === session.session ? session : await sessionOf(deps, context, good.session);
  return { session: of, unit: undefined, position: last.end_position };
}

/** The newest first. A round has hardly more: Skaffold ends it when a step fails. */
async function failedSteps({ query }: SideDeps, context: SideContext, { session }: Session, at: string) {
  const request = { ...base(context), sessions: [session], kinds: stepKinds, outcomes: ["failed"], limit: 20 };
  return (await query.listOperations({ ...request, at })).items;
}

export const stepKey = ({ kind, subject }: Pick<Operation, "kind" | "subject">) => `${kind} ${subject}`;

/** SIGTERM ended the app of a rkt host, as it does when another one of its pod fails. */
const wasTerminated = ({ kind, exit_code }: Operation) => kind === "app" && exit_code === 15;

export type FirstFailed = { readonly step: Operation; readonly tries: number };

/**
 * The failed step that ended first: what failed after it followed from it. A step that succeeded when it was tried again
 * is none. Without loops, the first of the newest round: an earlier one may have failed, too.
 */
export function firstFailed(unit: Operation | undefined, steps: readonly Operation[]): FirstFailed | undefined {
  const lastOutcome = new Map(steps.map((step) => [stepKey(step), step.outcome]));
  const failed = steps
    .filter((step) => step.outcome === "failed" && lastOutcome.get(stepKey(step)) !== "succeeded")
    .toSorted(
      (a, b) => Number(wasTerminated(a)) - Number(wasTerminated(b)) || (a.end_position < b.end_position ? -1 : 1),
    );
  const ofRound = unit === undefined ? firstOfRound(failed) : undefined;
  const ofLoop = failed.find(({ kind, subject }) => kind === unit?.cause?.phase && subject === unit.cause.subject);
  const step = ofRound ?? ofLoop ?? failed[0];
  return step && { step, tries: failed.filter((one) => stepKey(one) === stepKey(step)).length };
}

/** A step that begins so soon after a failure follows from it, as in the statistics of failures. */
const consequenceMs = 500;

/** The failed step of Skaffold from which the newest of them followed: it ended while that ran, or hardly before. */
function firstOfRound(failed: readonly Operation[]): Operation | undefined {
  const steps = failed.filter(({ kind, ended_at }) => stepKinds.includes(kind) && ended_at !== undefined);
  const [newest, ...others] = steps.toSorted((a, b) => (a.start_position > b.start_position ? -1 : 1));
  let first = newest;
  const byEnd = others.toSorted((a, b) => -endOrder(a, b));
  // A consequence may have followed from another one.
  for (const step of byEnd) if (first !== undefined && followsFrom(first, step)) first = step;
  return first;
}

function followsFrom(step: Operation, earlier: Operation): boolean {
  const began = step.started_at ?? step.ended_at;
  return (
    earlier.ended_at !== undefined &&
    began !== undefined &&
    earlier.runner === step.runner &&
    (earlier.kind !== step.kind || earlier.subject !== step.subject) &&
    endOrder(earlier, step) < 0 &&
    msBetween(earlier.ended_at, began) < consequenceMs
  );
}

function endOrder(a: Operation, b: Operation): number {
  if (a.ended_at === undefined || b.ended_at === undefined) return 0;
  return compareTimestamps(a.ended_at, b.ended_at) || (a.end_position < b.end_position ? -1 : 1);
}

async function namedLoop(
  deps: SideDeps,
  context: SideContext,
  { session, runner, loop }: Extract<SideName, { type: "loop" }>,
): Promise<Side> {
  const found = await sessionOf(deps, context, session);
  const unit = await newest(deps, { ...base(context), sessions: [session], runner, loop, kinds: ["loop"], limit: 1 });
  if (unit !== undefined) return ofUnit(deps, context, unit, found);
  throw new TapedeckError("not_found", `session ${session} has no loop ${loop} of runner ${runner}`);
}

async function ofUnit(deps: SideDeps, context: SideContext, unit: Operation, known: Session): Promise<Side> {
  const session = unit.session === known.session ? known : await sessionOf(deps, context, unit.session);
  return { session, unit, position: unit.end_position || session.end_position };
}

async function sessionAt(
  { query }: SideDeps,
  context: SideContext,
  { source, at }: Extract<SideName, { type: "source" }>,
): Promise<Session> {
  const resolved = await resolveSource(query, {
    ...context,
    ...(source !== undefined && { source }),
    at: at ?? context.at,
  });
  const name = nameOf(resolved);
  const { items } = await query.listSessions({ ...base(context), sources: [name], at: at ?? context.at, limit: 1 });
  if (items[0] !== undefined) return items[0];
  const { developer, project } = sourceParts(name);
  const when = at === undefined ? "yet" : `at ${at}`;
  throw new TapedeckError("before_first", `${developer}/${project} has no session ${when}`);
}

async function sessionOf({ query }: SideDeps, context: SideContext, session: string): Promise<Session> {
  const { items } = await query.listSessions({ ...base(context), sessions: [session], limit: 1 });
  if (items[0] !== undefined) return items[0];
  throw new TapedeckError("unknown_session", `there is no session "${session}"`);
}

/** Where to read the state of a whole session. */
async function positionOf({ query }: SideDeps, context: SideContext, session: Session, at: string | undefined) {
  if (at === undefined) return session.end_position;
  const { items } = await query.listSessions({ ...base(context), sessions: [session.session], at, limit: 1 });
  if (items[0] !== undefined) return items[0].end_position;
  throw new TapedeckError("before_first", `session ${session.session} had not begun at ${at}`);
}

async function newest({ query }: SideDeps, request: Parameters<QueryClient["listOperations"]>[0]) {
  return (await query.listOperations(request)).items[0];
}

function base({ workspace, at }: SideContext) {
  return { workspace, at };
}
