import type { LogReader, ReadFrom, RecordedEvent } from "@tapedeck/shared/log/log";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import { lastBy } from "../../positions.ts";

/** Timers accept no more than 24 days. */
const longestDelayMs = 3_600_000;

export type FollowUntil = {
  readonly signal: AbortSignal;
  readonly caughtUp: (seq: number) => void;
  readonly reached: (seq: number) => void;
  /** Called before the end with the last sequence that was recorded at the time or before. */
  readonly ended: (seq: number) => void;
};

/**
 * History, then live, until a future time has passed: everything that is recorded by then, and nothing after it. Ends even
 * when no event comes. The log's clock decides, because the clocks of client and gateway may differ.
 */
export async function* followUntil(
  log: LogReader,
  from: ReadFrom,
  time: Date,
  { signal, caughtUp, reached, ended }: FollowUntil,
): AsyncGenerator<RecordedEvent, void> {
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

/** The last sequence recorded at a time or before, once the time has passed; earlier when a later event was read. */
async function endOf(log: LogReader, time: Date, over: AbortSignal, isLater: AbortSignal): Promise<number | undefined> {
  const waiting = AbortSignal.any([over, isLater]);
  for (let wait = msUntil(time); wait > 0 && !waiting.aborted; wait = msUntil(time)) {
    await delay(Math.min(wait, longestDelayMs), waiting);
  }
  const retry = backoff(20, 1_000);
  while (!over.aborted) {
    // A log that is away comes back.
    const seq = await lastBy(log, time).catch(() => undefined);
    if (seq !== undefined) return seq;
    await delay(retry.next(), over);
  }
  return undefined;
}

function msUntil(time: Date): number {
  return time.getTime() + 1 - Date.now();
}
