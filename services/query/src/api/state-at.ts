import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { kinds } from "@tapedeck/shared/events/kinds";
import { recordedNouns } from "@tapedeck/shared/events/upcast";
import type { LogReader } from "@tapedeck/shared/log/log";
import { earlierOf, firstMessageAfter, justBefore, type Offset, sequenceOf } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { sourceFilter } from "@tapedeck/shared/log/subjects";
import type { SourceName } from "@tapedeck/shared/source";
import type { Tx } from "../db/database.ts";
import type { SessionRow } from "../db/schema.ts";
import { type Fold, isState } from "../views/states/fold.ts";
import { askLog } from "./reach.ts";

/** A stored state, and the range of the log that leads from it to the requested position. */
export type Base = { readonly state: unknown; readonly after: Offset; readonly until: Offset };

/** The stored state of a session that is nearest before the position. */
export async function nearestState(tx: Tx, fold: Fold, session: SessionRow, at: Offset): Promise<Base> {
  const live = await tx
    .selectFrom("fold_states")
    .select(["position", "state"])
    .where("session", "=", session.session)
    .where("fold_version", "=", fold.version)
    .where("position", "<=", at)
    .executeTakeFirst();
  // No event after the live state's position touches it.
  if (live !== undefined) return { state: JSON.parse(live.state), after: at, until: at };
  const snapshot = await tx
    .selectFrom("snapshots")
    .select(["position", "state"])
    .where("session", "=", session.session)
    .where("fold_version", "=", fold.version)
    .where("position", "<=", at)
    .orderBy("position", "desc")
    .limit(1)
    .executeTakeFirst();
  const until = earlierOf(at, session.last_position);
  if (snapshot === undefined) return { state: fold.initial, after: justBefore(session.start_position), until };
  return { state: JSON.parse(snapshot.state), after: snapshot.position, until };
}

/**
 * Folds the session's events onto the base.
 * @throws TapedeckError out_of_range when the log no longer holds them, not_ready when it is away or too slow
 */
export async function foldFrom(
  log: () => LogReader,
  fold: Fold,
  { session, source }: SessionRow,
  base: Base,
  signal: AbortSignal,
): Promise<unknown> {
  if (base.after >= base.until) return base.state;
  const reader = log();
  return askLog(async () => {
    const { firstOffset } = await reader.bounds();
    // The first event needed is not text, so only a limit on the whole log can have removed it.
    if (sequenceOf(firstOffset) > firstMessageAfter(base.after)) throw expired(reader.epoch, firstOffset);
    let state = base.state;
    const from = { afterOffset: base.after, subjects: stateSubjects(source as SourceName) };
    for await (const { event } of reader.history(from, base.until, signal)) {
      if (event.session === session && isState(event.kind)) state = fold.evolve(state, event);
    }
    if (signal.aborted) throw new TapedeckError("not_ready", "the log did not answer in time: try again in a moment");
    return state;
  });
}

/** The source's subjects that can touch state. Text, which is most of a log, is not read. */
function stateSubjects(source: SourceName): string[] {
  const nouns = new Set(kinds.filter(isState).flatMap(recordedNouns));
  return [...nouns].map((noun) => sourceFilter(source).replace(/>$/, `*.${noun}`));
}

function expired(epoch: string, firstOffset: Offset): TapedeckError {
  const earliest = formatPosition({ epoch, offset: firstOffset });
  return new TapedeckError("out_of_range", `the log keeps nothing before ${earliest} any more`, {
    field: "at",
    earliest,
  });
}
