import type { CallerKind } from "@tapedeck/shared/audit/caller-kind";
import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { type Erasure, ErasureStore } from "@tapedeck/shared/log/erasures/erasure-store";
import { endOf, logStart, type Offset, sequenceOf } from "@tapedeck/shared/log/offset";
import { parseSourceName, type SourceName, sourceParts } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import {
  type EraseDeps,
  findIn,
  findSource,
  type SessionLocation,
  type SessionToErase,
  sessionSubjects,
} from "./erase-session.ts";

export type EraseRequested = {
  readonly session: string;
  /** The source in which the caller found it. What the caller has read may be old: the log may have it elsewhere by now. */
  readonly source?: SourceName | undefined;
  /** The whole session is after this position. */
  readonly afterOffset?: Offset;
  /** The caller, for the audit log. */
  readonly who: string;
  readonly kind: CallerKind;
  readonly by?: string | undefined;
};

/**
 * Begins the erasure of a session, which an ingest then finishes by itself. A repeated call returns the erasure that is
 * under way or has ended, unless the log has the session again. `confirm` is called before anything is done.
 * @throws TapedeckError unknown_session; invalid_argument when the session goes on; not_ready when it was imported again while
 *   it is being erased. Rejects when the log is unavailable
 */
export async function beginErasure(
  requested: EraseRequested,
  deps: EraseDeps,
  confirm: (source: SourceName) => Promise<void> = async () => {},
): Promise<Erasure> {
  const { session, who, kind, by } = requested;
  const { workspace } = deps;
  const erasures = new ErasureStore(deps.nats);
  const known = await erasures.of(session);
  const before = known !== undefined && isIn(workspace, known.source) ? known : undefined;
  if (before?.state === "removing") {
    if (await isImportedAnew(before, deps)) throw importedAnew(session);
    return before;
  }
  const found = await findAnywhere(requested, before, deps);
  const unknown = () => new TapedeckError("unknown_session", `there is no session "${session}"`, { field: "session" });
  if (found === undefined) throw unknown();
  const { source, afterOffset } = found;
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

function isIn(workspace: string, source: string): boolean {
  return source.split("/")[0] === workspace;
}

/**
 * Finds what the log has of a session, also outside of the source that the caller or an earlier erasure names: an erased
 * session may have been imported into another source since.
 */
async function findAnywhere(
  { session, source: named, afterOffset = logStart }: EraseRequested,
  before: Erasure | undefined,
  deps: EraseDeps,
): Promise<(SessionToErase & Pick<SessionLocation, "afterOffset">) | undefined> {
  const findAfter = async (source: SourceName | undefined, offset: Offset) => {
    if (source === undefined || !isIn(deps.workspace, source)) return undefined;
    return { ...(await findIn({ source, session, afterOffset: offset }, deps)), afterOffset: offset };
  };
  const found = await findAfter(named, afterOffset);
  if (found !== undefined && isRecorded(found)) return found;
  const source = (await findSource(session, deps)) ?? parseSourceName(before?.source ?? "");
  return source === undefined || source === named ? found : await findAfter(source, logStart);
}

/** Whether the log has events of the session that no mark declares erased. */
function isRecorded({ ownOrdinals, marked }: SessionToErase): boolean {
  return ownOrdinals.length > 0 && !marked;
}

/** Whether the log has events of a session behind the mark of the erasure that is under way. Another log gets a new mark. */
async function isImportedAnew({ session, source, epoch, markedSeq }: Erasure, deps: EraseDeps): Promise<boolean> {
  if (markedSeq === undefined || epoch !== deps.log.epoch) return false;
  const { lastOffset } = await deps.log.reader.bounds();
  const from = { afterOffset: endOf(markedSeq), subjects: sessionSubjects(workspaceOf({ source })) };
  let isAnew = false;
  for await (const { event } of deps.log.reader.history(from, lastOffset, deps.signal)) {
    if (event.session === session) isAnew = event.kind !== "session.erased";
  }
  deps.signal.throwIfAborted();
  return isAnew;
}

function importedAnew(session: string): TapedeckError {
  const text = `session ${session} is still being erased, and was imported again meanwhile: repeat the request when that is over`;
  return new TapedeckError("not_ready", text, { field: "session" });
}

/** How often the progress of an erasure is read. */
const followMs = 200;
/** How long a caller waits until the log has the mark, which it can't get while the source is being imported. */
const markMs = 10_000;

/**
 * Yields the progress of an erasure: when its mark is in the log, when it has changed, and at its end. Rejects when the log
 * is unavailable.
 * @throws TapedeckError not_ready when the mark comes too late
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

export function workspaceOf({ source }: Pick<Erasure, "source">): string {
  const parsed = parseSourceName(source);
  return parsed === undefined ? "-" : sourceParts(parsed).workspace;
}
