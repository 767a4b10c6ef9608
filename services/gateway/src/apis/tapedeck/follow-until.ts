import type { LogReader, ReadFrom, Recorded } from "@tapedeck/shared/log/log";
import { backoff, pause } from "@tapedeck/shared/sync/delay";
import { lastBy } from "../../positions.ts";

/** Timers take no more than 24 days. */
const longestPauseMs = 3_600_000;

export type FollowUntil = {
  readonly signal: AbortSignal;
  readonly caughtUp: (seq: number) => void;
  readonly reached: (seq: number) => void;
  /** The last sequence that was recorded at the time or before: told before the end. */
  readonly ended: (seq: number) => void;
};

/**
 * History, then live, until a time has passed that is still to come; all that is recorded by then, and nothing after it.
 * Ends also when no event comes. The time is the log's: who asks and who serves may have other clocks.
 */
export async function* followUntil(
  log: LogReader,
  from: ReadFrom,
  time: Date,
  { signal, caughtUp, reached, ended }: FollowUntil,
): AsyncGenerator<Recorded, void> {
  const left = new AbortController();
  const isLater = new AbortController();
  const passed = new AbortController();
  const over = AbortSignal.any([signal, left.signal]);
  let done = from.afterSeq;
  const end = endOf(log, time, over, isLater.signal).finally(() => passed.abort());
  try {
    const following = log.follow(from, {
      signal: AbortSignal.any([over, passed.signal]),
      caughtUp,
      reached(seq) {
        done = seq;
        reached(seq);
      },
    });
    for await (const recorded of following) {
      if (recorded.recordedAt > time) break;
      yield recorded;
      done = recorded.seq;
    }
    isLater.abort();
    const endSeq = await end;
    if (endSeq === undefined) return;
    ended(endSeq);
    if (endSeq > done) yield* log.history({ ...from, afterSeq: done }, endSeq, over);
  } finally {
    left.abort();
  }
}

/** The last sequence recorded at a time or before, when that has passed; sooner asked for when something later was seen. */
async function endOf(log: LogReader, time: Date, over: AbortSignal, isLater: AbortSignal): Promise<number | undefined> {
  const waiting = AbortSignal.any([over, isLater]);
  for (let wait = msUntil(time); wait > 0 && !waiting.aborted; wait = msUntil(time)) {
    await pause(Math.min(wait, longestPauseMs), waiting);
  }
  const retry = backoff(20, 1_000);
  while (!over.aborted) {
    // Away: it comes back.
    const seq = await lastBy(log, time).catch(() => undefined);
    if (seq !== undefined) return seq;
    await pause(retry.next(), over);
  }
  return undefined;
}

function msUntil(time: Date): number {
  return time.getTime() + 1 - Date.now();
}
