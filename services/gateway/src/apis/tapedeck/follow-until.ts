import type { HeldBatches, LogReader, ReadFrom } from "@tapedeck/shared/log/log";
import type { Offset } from "@tapedeck/shared/log/offset";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import { lastBy } from "../../positions.ts";

/** Timers accept no more than 24 days. */
const longestDelayMs = 3_600_000;

export type FollowUntil = {
  readonly signal: AbortSignal;
  readonly caughtUp: (offset: Offset) => void;
  readonly reached: (offset: Offset) => void;
  /** Called before the end with the last offset that was recorded at the time or before. */
  readonly ended: (offset: Offset) => void;
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
): HeldBatches {
  const left = new AbortController();
  const isLater = new AbortController();
  const passed = new AbortController();
  const over = AbortSignal.any([signal, left.signal]);
  let done = from.afterOffset;
  const end = endAt(log, time, over, isLater.signal).finally(() => passed.abort());
  try {
    const following = log.followBatches(from, {
      signal: AbortSignal.any([over, passed.signal]),
      caughtUp,
      reached(offset) {
        done = offset;
        reached(offset);
      },
    });
    for await (const batch of following) {
      const late = batch.findIndex((held) => (held.decode()?.recordedAt ?? 0) > time);
      const inTime = late < 0 ? batch : batch.slice(0, late);
      if (inTime.length > 0) yield inTime;
      done = inTime.at(-1)?.offset ?? done;
      if (late >= 0) break;
    }
    isLater.abort();
    const endOffset = await end;
    if (endOffset === undefined) return;
    ended(endOffset);
    if (endOffset > done) yield* log.historyBatches({ ...from, afterOffset: done }, endOffset, over);
  } finally {
    left.abort();
  }
}

/** The last offset recorded at a time or before, once the time has passed; earlier when a later event was read. */
async function endAt(log: LogReader, time: Date, over: AbortSignal, isLater: AbortSignal): Promise<Offset | undefined> {
  const waiting = AbortSignal.any([over, isLater]);
  for (let wait = msUntil(time); wait > 0 && !waiting.aborted; wait = msUntil(time)) {
    await delay(Math.min(wait, longestDelayMs), waiting);
  }
  const retry = backoff(20, 1_000);
  while (!over.aborted) {
    // A log that is away comes back.
    const offset = await lastBy(log, time).catch(() => undefined);
    if (offset !== undefined) return offset;
    await delay(retry.next(), over);
  }
  return undefined;
}

function msUntil(time: Date): number {
  return time.getTime() + 1 - Date.now();
}
