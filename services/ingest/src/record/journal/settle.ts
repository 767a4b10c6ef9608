// Whether a message is in the log, however its publish ended.
//
//   publish --acknowledged--> written
//      ^  \--refused--> not written: wait, publish again
//      |   \--no answer, or another sequence expected--> lastOf(source) --ours--> written
//      |                                                    |      \--any other--> LostRaceError
//      \----------------------wait---------the one before---/
//
// 1. Every attempt has the same bytes and the same expected sequence, so the log takes one of them at most.
// 2. A message is ours by the writer's id and the cursor. No two writers have the same id.
// 3. After half its time to live, a message that is not there may have expired: that is a LostRaceError, too.
// A full disk: docs/decisions/0020-a-full-disk.md.
import type { MessageGroup } from "@tapedeck/shared/log/grouping";
import type { Cursor, LastOfSource, LogWriter, NewEvent, PublishOutcome } from "@tapedeck/shared/log/log";
import type { Sequence } from "@tapedeck/shared/log/offset";
import type { SourceName } from "@tapedeck/shared/source";
import { backoff, delay } from "@tapedeck/shared/sync/delay";

/**
 * The log holds a message of this source that this writer has not written: the writer's owner starts over from the log.
 */
export class LostRaceError extends Error {
  override readonly name = "LostRaceError";
  readonly source: SourceName;
  readonly last: LastOfSource | undefined;
  constructor(source: SourceName, last: LastOfSource | undefined) {
    super(`another writer wrote ${source} (last message: ${last === undefined ? "gone" : last.seq})`);
    this.source = source;
    this.last = last;
  }
}

export type SettleOptions = {
  readonly log: LogWriter;
  readonly source: SourceName;
  /**
   * An id that no writer has used before: a message that an earlier writer left in flight and that lands late must not
   * look like ours.
   */
  readonly writer: string;
  /** Called for each attempt that failed: a publish without acknowledgement, or a question for the last message. */
  readonly onPublishFailure?: ((published: Exclude<PublishOutcome, { outcome: "acknowledged" }>) => void) | undefined;
  /** Waiting times between attempts, in ms. */
  readonly retry?: { readonly first: number; readonly max: number } | undefined;
};

const defaultRetry = { first: 50, max: 2_000 } as const;

/**
 * Publishes one message until the log has it, and gives its sequence. The message stays the same however often it is
 * tried. Undefined if the signal aborts before that is known.
 * @throws LostRaceError
 */
export async function settle(
  options: SettleOptions,
  { events }: Pick<MessageGroup, "events">,
  expected: Sequence,
  signal: AbortSignal,
): Promise<Sequence | undefined> {
  const { log, source, writer, onPublishFailure, retry = defaultRetry } = options;
  const waits = backoff(retry.first, retry.max);
  const { cursor, ttlSeconds = Number.POSITIVE_INFINITY } = events.at(-1) as NewEvent;
  const forgottenAfterMs = ttlSeconds * 500;
  const elapsedMs = stopwatch();
  while (!signal.aborted) {
    const published = await log.publish(source, writer, events, expected);
    if (published.outcome === "acknowledged") return published.seq;
    onPublishFailure?.(published);
    if (published.outcome !== "refused") {
      const last = await askLast(options, signal);
      if (last === "aborted") return undefined;
      if (last !== undefined && isOf(last, { writer, cursor, expected })) return last.seq;
      const isBefore = (last?.seq ?? 0) === expected;
      // It may have been there and have expired, which only a start from the log allows for.
      if (!isBefore || elapsedMs() > forgottenAfterMs) throw new LostRaceError(source, last);
      // It may still land: the same message with the same expectation makes one of the two fail, and we come here again.
    }
    await delay(waits.next(), signal);
  }
  return undefined;
}

/** The time since the call, by the clock that says more: one may be set back, the other stands still while a machine sleeps. */
function stopwatch(): () => number {
  const [date, running] = [Date.now(), performance.now()];
  return () => Math.max(Date.now() - date, performance.now() - running);
}

async function askLast(
  { log, source, onPublishFailure, retry = defaultRetry }: SettleOptions,
  signal: AbortSignal,
): Promise<LastOfSource | undefined | "aborted"> {
  const waits = backoff(retry.first, retry.max);
  while (!signal.aborted) {
    try {
      return await log.lastOf(source);
    } catch (cause) {
      onPublishFailure?.({ outcome: "unknown", cause });
      await delay(waits.next(), signal);
    }
  }
  return "aborted";
}

/** Whether the source's last message is the one that was published. */
function isOf(
  { seq, mark }: LastOfSource,
  { writer, cursor, expected }: { readonly writer: string; readonly cursor: Cursor; readonly expected: Sequence },
): boolean {
  return seq > expected && mark.writer === writer && cursorKey(mark.cursor) === cursorKey(cursor);
}

/** Each event moves one ordinal on, so no two events of a source have the same cursor. */
function cursorKey({ session, ordinals }: Cursor): string {
  const sorted = Object.entries(ordinals).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([session, sorted]);
}
