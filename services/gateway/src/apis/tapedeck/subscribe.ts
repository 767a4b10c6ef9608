import { eventToJson } from "@tapedeck/shared/events/json";
import { type Filter, matches } from "@tapedeck/shared/filter/filter";
import { toSubjects } from "@tapedeck/shared/filter/subjects";
import type { LogReader, Recorded } from "@tapedeck/shared/log/log";
import { formatPosition } from "@tapedeck/shared/log/position";

/** What a subscriber gets, on every transport. `json` is the rendered message without an id, made once per event. */
export type SubscriptionMessage = {
  readonly type: "event" | "caught_up" | "bookmark" | "complete" | "state";
  readonly position: string;
  readonly json: string;
};

export type Subscription = {
  readonly workspace: string;
  readonly filter: Filter;
  /** The sequence after which it starts. */
  readonly afterSeq: number;
  /** Ends with `complete` after this sequence. */
  readonly untilSeq?: number;
  readonly original?: boolean;
};

/** A position at least this often while events are passed over. */
const bookmarkEvery = { events: 10_000, ms: 5_000 };

/**
 * History, then live, in order, once each; `caught_up` between the two; bookmarks where matching events are rare.
 * Ends with the signal, or with `complete` where the subscription has an end.
 */
export async function* subscribe(
  log: LogReader,
  { workspace, filter, afterSeq, untilSeq, original = false }: Subscription,
  signal: AbortSignal,
): AsyncGenerator<SubscriptionMessage, void> {
  const at = (seq: number) => formatPosition({ epoch: log.epoch, seq });
  const mark = (type: "caught_up" | "bookmark" | "complete", seq: number): SubscriptionMessage => {
    const position = at(seq);
    return { type, position, json: `{"type":"${type}","position":"${position}"}` };
  };

  const subjects = toSubjects(filter, workspace);
  if (untilSeq !== undefined) {
    for await (const recorded of log.history({ afterSeq, subjects }, untilSeq, signal)) {
      if (matches(filter, recorded.event)) yield rendered(log.epoch, recorded, original);
    }
    if (!signal.aborted) yield mark("complete", untilSeq);
    return;
  }

  let caughtUpAt: number | undefined;
  let wake = Promise.withResolvers<void>();
  const caughtUp = (seq: number) => {
    caughtUpAt = seq;
    wake.resolve();
  };
  const events = log.follow({ afterSeq, subjects }, { signal, caughtUp });
  let passedOver = { events: 0, seq: 0, since: Date.now() };
  try {
    for (;;) {
      const turn = events.next();
      let settled = false;
      const settle = () => {
        settled = true;
        wake.resolve();
      };
      turn.then(settle, settle);
      while (!settled) {
        // A fresh wake-up for each wait: racing against one long-lived promise would keep every turn alive.
        await wake.promise;
        wake = Promise.withResolvers();
        if (caughtUpAt !== undefined) {
          yield mark("caught_up", caughtUpAt);
          caughtUpAt = undefined;
        }
      }
      const next = await turn;
      if (next.done === true) return;
      const recorded = next.value;
      if (matches(filter, recorded.event)) {
        passedOver = { events: 0, seq: 0, since: Date.now() };
        yield rendered(log.epoch, recorded, original);
      } else {
        passedOver = { ...passedOver, events: passedOver.events + 1, seq: recorded.seq };
        if (passedOver.events >= bookmarkEvery.events || Date.now() - passedOver.since >= bookmarkEvery.ms) {
          yield mark("bookmark", passedOver.seq);
          passedOver = { events: 0, seq: 0, since: Date.now() };
        }
      }
    }
  } finally {
    await events.return();
  }
}

// Live events are shared by all subscribers, so each is rendered once, whoever asks first.
const renderings = new WeakMap<Recorded, SubscriptionMessage>();

function rendered(epoch: string, recorded: Recorded, original: boolean): SubscriptionMessage {
  const known = original ? undefined : renderings.get(recorded);
  if (known !== undefined) return known;
  const event = eventToJson(recorded, epoch, { original });
  const position = formatPosition({ epoch, seq: recorded.seq });
  const message: SubscriptionMessage = {
    type: "event",
    position,
    json: `{"type":"event","position":"${position}","event":${JSON.stringify(event)}}`,
  };
  if (!original) renderings.set(recorded, message);
  return message;
}
