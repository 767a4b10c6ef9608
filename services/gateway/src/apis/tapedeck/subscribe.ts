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
  /** The sequence after which it starts. */
  readonly afterOffset: Offset;
  /** Ends with `complete` after this sequence. */
  readonly untilOffset?: Offset;
  /** Ends with `complete` when this future time has passed; live until then. */
  readonly untilTime?: Date;
  readonly original?: boolean;
  readonly bookmarks?: Bookmarks;
};

const defaultBookmarks: Bookmarks = { ms: 5_000, events: 10_000 };

/**
 * History, then live, in order, once each; `caught_up` between the two; bookmarks where matching events are rare.
 * Ends with the signal, or with `complete` when the subscription has an end.
 */
export async function* subscribe(
  log: LogReader,
  { workspace, filter, afterOffset, original = false, bookmarks = defaultBookmarks, ...end }: Subscription,
  signal: AbortSignal,
): AsyncGenerator<SubscriptionMessage, void> {
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
    return untilOffset === undefined ? log.follow(from, options) : log.history(from, untilOffset, over);
  };
  const reader = new SubscriptionReader({
    open,
    isWanted: ({ event }) => matches(filter, event),
    afterOffset,
    bookmarks,
  });
  for await (const item of reader.items(signal)) {
    sentOffset = item.offset;
    yield item.type === "event"
      ? eventMessage(log.epoch, item.recorded, { original })
      : markMessage(item.type, log.epoch, item.offset);
  }
  // An end before the last message must not lead a client that resumes back.
  if (untilOffset !== undefined && !signal.aborted) {
    yield markMessage("complete", log.epoch, laterOf(sentOffset, untilOffset));
  }
}
