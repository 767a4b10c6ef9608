import { type Filter, matches } from "@tapedeck/shared/filter/filter";
import { toSubjects } from "@tapedeck/shared/filter/subjects";
import type { LogReader } from "@tapedeck/shared/log/log";
import { laterOf, type Offset } from "@tapedeck/shared/log/offset";
import { followUntil } from "./follow-until.ts";
import { eventMessage, markMessage, type SubscriptionMessage } from "./messages.ts";
import { type Bookmarks, type OpenEvents, SubscriptionReader } from "./subscription-reader.ts";

export type Subscription = {
  readonly workspace: string;
  readonly filter: Filter;
  /** After which it starts. */
  readonly afterOffset: Offset;
  /** Ends with `complete` after it. */
  readonly untilOffset?: Offset;
  /** Ends with `complete` when this future time has passed; live until then. */
  readonly untilTime?: Date;
  readonly original?: boolean;
  readonly bookmarks?: Bookmarks;
};

const defaultBookmarks: Bookmarks = { ms: 5_000, messages: 1_000 };

/**
 * History, then live, in order, once each; `caught_up` between the two; bookmarks where matching events are rare.
 * Ends with the signal, or with `complete` when the subscription has an end.
 */
export async function* subscribe(
  log: LogReader,
  subscription: Subscription,
  signal: AbortSignal,
): AsyncGenerator<SubscriptionMessage, void> {
  for await (const batch of subscribeInBatches(log, subscription, signal)) yield* batch;
}

/** The same, with the messages that are there at the same time together. */
export async function* subscribeInBatches(
  log: LogReader,
  { workspace, filter, afterOffset, original = false, bookmarks = defaultBookmarks, ...end }: Subscription,
  signal: AbortSignal,
): AsyncGenerator<readonly SubscriptionMessage[], void> {
  const from = { afterOffset, subjects: toSubjects(filter, workspace) };
  let { untilOffset } = end;
  let sentOffset = afterOffset;
  const open: OpenEvents = (over, { caughtUp, reached }) => {
    const options = { signal: over, caughtUp, reached };
    if (end.untilTime !== undefined) {
      const ended = (offset: Offset) => {
        untilOffset = offset;
      };
      return followUntil(log, from, end.untilTime, { ...options, ended });
    }
    return untilOffset === undefined ? log.followBatches(from, options) : log.historyBatches(from, untilOffset, over);
  };
  const reader = new SubscriptionReader({
    open,
    messageOf(held) {
      const recorded = held.decode();
      if (recorded === undefined || !matches(filter, recorded.event)) return undefined;
      return eventMessage(log.epoch, held, recorded, { original });
    },
    markOf: (type, offset) => markMessage(type, log.epoch, offset),
    afterOffset,
    bookmarks,
  });
  for await (const { offset, messages } of reader.items(signal)) {
    sentOffset = offset;
    yield messages;
  }
  // An end before the last message must not lead a client that resumes back.
  if (untilOffset !== undefined && !signal.aborted) {
    yield [markMessage("complete", log.epoch, laterOf(sentOffset, untilOffset))];
  }
}
