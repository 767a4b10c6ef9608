import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { kindNoun, kinds } from "@tapedeck/shared/events/kinds";
import type { LogReader } from "@tapedeck/shared/log/log";
import { earlierOf, firstMessageAfter, justBefore, type Offset, sequenceOf } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { sourceFilter } from "@tapedeck/shared/log/subjects";
import type { SourceName } from "@tapedeck/shared/source";
import type { CollectionScope, SessionRange } from "../../views/states/collection.ts";
import { type Fold, isState } from "../../views/states/fold.ts";
import type { WrittenState } from "../../views/states/newest-states.ts";
import { askLog } from "../reach.ts";
import { type HeldState, ReadableState } from "./recent-states.ts";
import type { StateTables, StoredState } from "./state-tables.ts";

export type StateDeps = {
  readonly log: () => LogReader;
  readonly fold: Fold;
  /** A state that was read before. */
  readonly held: HeldState | undefined;
  /** States of the source that this process has written. */
  readonly written: readonly WrittenState[];
  readonly signal: AbortSignal;
};

/** `newest`: to be held for the next question. `isRead`: the whole state was read for this one. */
export type StateRead = { readonly state: ReadableState; readonly newest?: HeldState; readonly isRead?: boolean };

/**
 * The state of the scope's session at its position.
 * @throws TapedeckError the errors of foldFrom
 */
export async function stateAsOf(
  { log, fold, held, written, signal }: StateDeps,
  tables: StateTables,
  { session, offset }: CollectionScope,
): Promise<StateRead> {
  const { stored } = tables;
  if (session === undefined) return { state: ReadableState.of(fold.initial) };
  if (stored?.isLive) {
    const { json, ...known } = stored;
    const state = json === undefined ? nearestState(known, held, written) : ReadableState.of(JSON.parse(json));
    return { state, newest: { tables: { ...tables, stored: known }, state }, isRead: json !== undefined };
  }
  const base = stored?.json === undefined ? undefined : { state: JSON.parse(stored.json), after: stored.position };
  const { state, after } = base ?? { state: fold.initial, after: justBefore(session.start_position) };
  const until = earlierOf(offset, session.last_position);
  return { state: ReadableState.of(await foldFrom(log, fold, session, { state, after, until }, signal)) };
}

function nearestState(
  { version }: StoredState,
  held: HeldState | undefined,
  written: readonly WrittenState[],
): ReadableState {
  if (held !== undefined && held.tables.stored?.version === version) return held.state;
  // Without one the question needs no state.
  return ReadableState.of(written.find((one) => one.version === version)?.state ?? null);
}

/** A stored state, and the range of the log that leads from it to the requested position. */
type Base = { readonly state: unknown; readonly after: Offset; readonly until: Offset };

/**
 * Folds the session's events onto the base.
 * @throws TapedeckError out_of_range when the log no longer holds them, not_ready when it is away or too slow
 */
async function foldFrom(
  log: () => LogReader,
  fold: Fold,
  { session, source }: SessionRange,
  base: Base,
  signal: AbortSignal,
): Promise<unknown> {
  if (base.after >= base.until) return base.state;
  const reader = log();
  return askLog(async () => {
    const lost = new AbortController();
    const isRetained = reader.bounds().then(({ firstOffset }) => {
      // The first event needed is not text, so only a limit on the whole log can have removed it.
      if (sequenceOf(firstOffset) > firstMessageAfter(base.after)) throw expired(reader.epoch, firstOffset);
    });
    isRetained.catch(() => lost.abort());
    const reading = AbortSignal.any([signal, lost.signal]);
    let state = base.state;
    const from = { afterOffset: base.after, subjects: stateSubjects(source as SourceName) };
    for await (const { event } of reader.history(from, base.until, reading)) {
      if (event.session === session && isState(event.kind)) state = fold.evolve(state, event);
    }
    await isRetained;
    if (signal.aborted) throw new TapedeckError("not_ready", "the log did not answer in time: try again in a moment");
    return state;
  });
}

/** The source's subjects that can touch state. Text, which is most of a log, is not read. */
function stateSubjects(source: SourceName): string[] {
  const nouns = new Set(kinds.filter(isState).map(kindNoun));
  return [...nouns].map((noun) => sourceFilter(source).replace(/>$/, `*.${noun}`));
}

function expired(epoch: string, firstOffset: Offset): TapedeckError {
  const earliest = formatPosition({ epoch, offset: firstOffset });
  return new TapedeckError("out_of_range", `the log no longer has anything before ${earliest}`, {
    field: "at",
    earliest,
  });
}
