import { type Filter, matches } from "@tapedeck/shared/filter/filter";
import { toSubjects } from "@tapedeck/shared/filter/subjects";
import type { LogReader, ReadFrom, Recorded } from "@tapedeck/shared/log/log";
import { eventMessage, markMessage, type SubscriptionMessage } from "./messages.ts";

export type Subscription = {
  readonly workspace: string;
  readonly filter: Filter;
  /** The sequence after which it starts. */
  readonly afterSeq: number;
  /** Ends with `complete` after this sequence. */
  readonly untilSeq?: number;
  readonly original?: boolean;
  /** How often a subscriber is told a position while nothing for it happens but the log goes on. Default 5,000. */
  readonly bookmarkMs?: number;
};

/**
 * History, then live, in order, once each; `caught_up` between the two; bookmarks where matching events are rare.
 * Ends with the signal, or with `complete` where the subscription has an end.
 */
export async function* subscribe(
  log: LogReader,
  { workspace, filter, afterSeq, untilSeq, original = false, bookmarkMs = 5_000 }: Subscription,
  signal: AbortSignal,
): AsyncGenerator<SubscriptionMessage, void> {
  const from = { afterSeq, subjects: toSubjects(filter, workspace) };
  if (untilSeq !== undefined) {
    for await (const recorded of log.history(from, untilSeq, signal)) {
      if (matches(filter, recorded.event)) yield eventMessage(log.epoch, recorded, { original });
    }
    if (!signal.aborted) yield markMessage("complete", log.epoch, untilSeq);
    return;
  }

  let told = { seq: afterSeq, at: Date.now() };
  const isBookmarkDue = (seq: number) => seq > told.seq && Date.now() - told.at >= bookmarkMs;
  for await (const step of steps(log, from, isBookmarkDue, signal)) {
    if (step.type === "event" && matches(filter, step.recorded.event)) {
      yield eventMessage(log.epoch, step.recorded, { original });
    } else if (step.type === "caught_up") {
      yield markMessage("caught_up", log.epoch, step.seq);
    } else if (isBookmarkDue(step.seq)) {
      yield markMessage("bookmark", log.epoch, step.seq);
    } else continue;
    told = { seq: step.seq, at: Date.now() };
  }
}

/** How far one has come: by an event, by joining the live tail, or because there is nothing more for now. */
type Step =
  | { readonly type: "event"; readonly seq: number; readonly recorded: Recorded }
  | { readonly type: "caught_up" | "reached"; readonly seq: number };

async function* steps(
  log: LogReader,
  from: ReadFrom,
  isBookmarkDue: (seq: number) => boolean,
  signal: AbortSignal,
): AsyncGenerator<Step, void> {
  const left = new AbortController();
  const come: (Step | { readonly type: "end" })[] = [];
  let wake = () => {};
  const add = (step: (typeof come)[number]) => {
    come.push(step);
    wake();
  };
  const events = log.follow(from, {
    signal: AbortSignal.any([signal, left.signal]),
    caughtUp: (seq) => add({ type: "caught_up", seq }),
    reached: (seq) => {
      if (come.length === 0 && isBookmarkDue(seq)) add({ type: "reached", seq });
    },
  });
  let failure: unknown;
  const ask = () => {
    events.next().then(
      ({ done, value }) => add(done === true ? { type: "end" } : { type: "event", seq: value.seq, recorded: value }),
      (error: unknown) => {
        failure = error;
        add({ type: "end" });
      },
    );
  };
  try {
    for (ask(); ; ) {
      const step = come.shift();
      if (step === undefined) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      } else if (step.type === "end") {
        if (failure !== undefined) throw failure;
        return;
      } else {
        yield step;
        if (step.type === "event") ask();
      }
    }
  } finally {
    left.abort();
  }
}
