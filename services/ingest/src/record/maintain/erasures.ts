import type { CallerKind } from "@tapedeck/shared/audit/caller-kind";
import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { type Erasure, ErasureStore } from "@tapedeck/shared/log/erasures/erasure-store";
import { logStart, type Offset, sequenceOf } from "@tapedeck/shared/log/offset";
import { parseSourceName, type SourceName, sourceParts } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import { MoveMarks } from "../moves/move-marks.ts";
import { type EraseDeps, findIn, findSource } from "./erase-session.ts";

export type EraseRequested = {
  readonly session: string;
  /** Undefined: any. */
  readonly workspace: string | undefined;
  /** Undefined where the caller does not know it: then it is looked for in the log. */
  readonly source?: SourceName | undefined;
  /** All of the session is after it. */
  readonly afterOffset?: Offset;
  /** The caller, for the audit log. */
  readonly who: string;
  readonly kind: CallerKind;
  readonly by?: string | undefined;
};

/**
 * Begins the erasure of a session, which an ingest then brings to its end by itself. Repeated, it returns the erasure that is
 * under way or has ended. `confirm` is called before anything is done.
 * @throws TapedeckError unknown_session; invalid_argument when the session goes on; not_ready when its workspace is in another
 *   shard, or on its way there. Rejects when the log is unavailable
 */
export async function beginErasure(
  { session, workspace, source: named, afterOffset = logStart, who, kind, by }: EraseRequested,
  deps: EraseDeps,
  confirm: (source: SourceName) => Promise<void> = async () => {},
): Promise<Erasure> {
  const erasures = new ErasureStore(deps.nats);
  const isHere = (source: string) => workspace === undefined || source.split("/")[0] === workspace;
  const known = await erasures.of(session);
  const before = known !== undefined && isHere(known.source) ? known : undefined;
  if (before?.state === "removing") return before;
  const source = named ?? parseSourceName(before?.source ?? "") ?? (await findSource(session, workspace, deps));
  const unknown = () => new TapedeckError("unknown_session", `there is no session "${session}"`, { field: "session" });
  if (source === undefined || !isHere(source)) throw unknown();
  await new MoveMarks(deps.nats).assertOpen(sourceParts(source).workspace);
  const found = await findIn({ source, session, afterOffset }, deps);
  if (found.ownOrdinals.length === 0 && before !== undefined) return before;
  if (found.ownOrdinals.length === 0 && !found.marked) throw unknown();
  if (found.goesOn) {
    const message = `session ${session} is still running: end it first, or it would be recorded again`;
    throw invalidArgument(message, "session");
  }
  await confirm(source);
  return await erasures.begin({
    source,
    session,
    epoch: deps.log.epoch,
    lastSeq: found.lastSeq,
    removedSeq: sequenceOf(afterOffset),
    removed: 0,
    state: "removing",
    began: new Date().toISOString(),
    who,
    kind,
    ...(by !== undefined && { by }),
  });
}

/** How often it is looked how far an erasure is. */
const followMs = 200;
/** So long a caller waits until the log has the mark. It can't have it while the source is being imported. */
const markMs = 10_000;

/**
 * How far an erasure is: as soon as its mark is in the log, when it has changed, and at its end. Rejects when the log is unavailable.
 * @throws TapedeckError not_ready when the workspace has moved away before its mark was in the log, or the mark is not there
 *   in time
 */
export async function* followErasure(
  { session }: Pick<Erasure, "session">,
  { nats, signal }: Pick<EraseDeps, "nats" | "signal">,
  waitMs = markMs,
): AsyncGenerator<Erasure, void> {
  const erasures = new ErasureStore(nats);
  const began = performance.now();
  let last = "";
  while (!signal.aborted) {
    const erasure = await erasures.of(session);
    if (erasure === undefined) return;
    if (erasure.markedSeq === undefined) {
      await new MoveMarks(nats).assertOpen(workspaceOf(erasure));
      if (performance.now() - began >= waitMs) throw unmarked(session);
    } else {
      const now = JSON.stringify(erasure);
      if (now !== last) yield erasure;
      last = now;
    }
    if (erasure.state === "done") return;
    await delay(followMs, signal);
  }
}

function unmarked(session: string): TapedeckError {
  const why = "its source accepts nothing now, because it is being imported or the log is busy";
  const text = `session ${session} is to be erased, but ${why}: the server continues by itself; repeat the request to see the progress`;
  return new TapedeckError("not_ready", text, { field: "session" });
}

/**
 * Waits until the marks of all erasures are in the log of the workspace, so that they come along to another shard.
 * @throws TapedeckError not_ready when one is not there in time
 */
export async function erasuresMarked(
  workspace: string,
  { nats, signal }: Pick<EraseDeps, "nats" | "signal">,
  waitMs = markMs,
): Promise<void> {
  const erasures = new ErasureStore(nats);
  const began = performance.now();
  while (!signal.aborted) {
    const open = await erasures.open();
    const one = open.find((erasure) => erasure.markedSeq === undefined && workspaceOf(erasure) === workspace);
    if (one === undefined) return;
    if (performance.now() - began >= waitMs) {
      const text = `session ${one.session} is about to be erased: the workspace "${workspace}" can move once the log has recorded that: try again in a moment`;
      throw new TapedeckError("not_ready", text);
    }
    await delay(followMs, signal);
  }
}

export function workspaceOf({ source }: Pick<Erasure, "source">): string {
  const parsed = parseSourceName(source);
  return parsed === undefined ? "-" : sourceParts(parsed).workspace;
}
