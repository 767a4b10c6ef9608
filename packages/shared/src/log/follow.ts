import { abortable } from "../sync/abortable.ts";
import { backoff, delay } from "../sync/delay.ts";
import type { FollowOptions, LogReader, ReadFrom, RecordedEvent } from "./log.ts";
import { laterOf, logStart, type Offset } from "./offset.ts";
import { subjectMatcher } from "./subject-match.ts";
import type { Tail } from "./tail.ts";

export type FollowDeps = Pick<LogReader, "bounds" | "lastMatch" | "history"> & { readonly tail: Tail };

/**
 * See LogReader.follow. A subscriber keeps only its position (`done`). While that is inside the tail's ring it reads from
 * there; when it falls out, or begins before it, it reads history and returns.
 *
 * The hand-over is exact because of its order: first what the tail has reached, then the leader's last match, which is
 * at least that, then history up to the match. Whatever is not after `reached` has been read then, also when the node
 * that serves history lags behind the leader; the rest is in the ring, or it is once more history's turn.
 */
export async function* followLog(
  { tail, bounds, lastMatch, history }: FollowDeps,
  { afterOffset, subjects }: ReadFrom,
  { signal, caughtUp, reached: reportReached }: FollowOptions,
): AsyncGenerator<RecordedEvent, void> {
  const matches = subjectMatcher(subjects);
  const retry = backoff(50, 2_000);
  let announce = caughtUp;
  let logEnd: Offset | undefined;
  let done = afterOffset;

  /** Undefined if the log is away, after a delay. */
  const ask = async (question: () => Promise<Offset>): Promise<Offset | undefined> => {
    try {
      const answer = await abortable(question(), signal);
      retry.reset();
      return answer;
    } catch {
      await delay(retry.next(), signal);
      return undefined;
    }
  };

  while (!signal.aborted) {
    const live = tail.now();
    if (live === undefined) {
      await tail.changed(signal);
      continue;
    }
    // "Caught up" covers everything in the log when the subscription began, even if the tail is behind that.
    if (announce !== undefined && logEnd === undefined) {
      logEnd = await ask(async () => (await bounds()).lastOffset);
      continue;
    }
    const { ring, last: reached } = live;
    if (done < ring.floor) {
      const match = await ask(() => lastMatch(subjects));
      if (match === undefined) continue;
      for await (const recorded of history({ afterOffset: done, subjects }, match, signal)) {
        yield recorded;
        done = recorded.offset;
      }
      if (!signal.aborted) done = laterOf(done, reached);
      continue;
    }
    let index = ring.indexAfter(done);
    for (let entry = ring.at(index); entry !== undefined && !signal.aborted; entry = ring.at(++index)) {
      if (matches(entry.tokens)) {
        const { recorded, expiresAtMs } = entry;
        const isKept = expiresAtMs === undefined || expiresAtMs > Date.now();
        if (recorded !== undefined && isKept) yield recorded;
      }
      done = entry.offset;
    }
    if (done < ring.floor || signal.aborted) continue;
    done = laterOf(done, tail.now()?.last ?? logStart);
    if (announce !== undefined && done >= (logEnd ?? 0)) {
      announce(done);
      announce = undefined;
    }
    if (announce === undefined) reportReached?.(done);
    // Checks again before waiting: an event that came while the last one was read has already woken us.
    if (ring.at(index) === undefined) await tail.changed(signal);
  }
}
