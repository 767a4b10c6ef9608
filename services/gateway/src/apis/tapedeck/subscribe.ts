import { type Filter, matches } from "@tapedeck/shared/filter/filter";
import { toSubjects } from "@tapedeck/shared/filter/subjects";
import type { LogReader, Recorded } from "@tapedeck/shared/log/log";
import { followUntil } from "./follow-until.ts";
import { eventMessage, markMessage, type SubscriptionMessage } from "./messages.ts";

export type Subscription = {
  readonly workspace: string;
  readonly filter: Filter;
  /** The sequence after which it starts. */
  readonly afterSeq: number;
  /** Ends with `complete` after this sequence. */
  readonly untilSeq?: number;
  /** Ends with `complete` when this time has passed, which is still to come; live until then. */
  readonly untilTime?: Date;
  readonly original?: boolean;
  /** A subscriber for whom there is nothing is told how far it is after so much time, or so many events. */
  readonly bookmarks?: Bookmarks;
};

export type Bookmarks = { readonly ms: number; readonly events: number };

const usualBookmarks: Bookmarks = { ms: 5_000, events: 10_000 };

/**
 * History, then live, in order, once each; `caught_up` between the two; bookmarks where matching events are rare.
 * Ends with the signal, or with `complete` where the subscription has an end.
 */
export async function* subscribe(
  log: LogReader,
  { workspace, filter, afterSeq, original = false, bookmarks = usualBookmarks, ...end }: Subscription,
  signal: AbortSignal,
): AsyncGenerator<SubscriptionMessage, void> {
  const from = { afterSeq, subjects: toSubjects(filter, workspace) };
  let { untilSeq } = end;
  let given = afterSeq;
  const read: Read = (over, { caughtUp, reached }) => {
    const following = { signal: over, caughtUp, reached };
    if (end.untilTime !== undefined) {
      const ended = (seq: number) => {
        untilSeq = seq;
      };
      return followUntil(log, from, end.untilTime, { ...following, ended });
    }
    return untilSeq === undefined ? log.follow(from, following) : log.history(from, untilSeq, over);
  };
  for await (const step of steps(read, (recorded) => matches(filter, recorded.event), afterSeq, bookmarks, signal)) {
    given = step.seq;
    yield step.type === "event"
      ? eventMessage(log.epoch, step.recorded, { original })
      : markMessage(step.type, log.epoch, step.seq);
  }
  // An end before what was given must not lead who resumes back.
  if (untilSeq !== undefined && !signal.aborted) {
    yield markMessage("complete", log.epoch, Math.max(given, untilSeq));
  }
}

/** How far one has come: by an event, by joining the live tail, or because nothing up to there was for one. */
type Step =
  | { readonly type: "event"; readonly seq: number; readonly recorded: Recorded }
  | { readonly type: "caught_up" | "bookmark"; readonly seq: number };

type Told = { readonly caughtUp: (seq: number) => void; readonly reached: (seq: number) => void };

type Read = (over: AbortSignal, told: Told) => AsyncGenerator<Recorded, void>;

/**
 * One event is read ahead at most. A bookmark never passes an event that has not been given: it stands at what was
 * passed while the next one was being read, and what comes later is given later.
 */
async function* steps(
  read: Read,
  isWanted: (recorded: Recorded) => boolean,
  afterSeq: number,
  bookmarks: Bookmarks,
  signal: AbortSignal,
): AsyncGenerator<Step, void> {
  const left = new AbortController();
  const come: (Step | { readonly type: "end" })[] = [];
  let given = { seq: afterSeq, at: performance.now() };
  let passed = afterSeq;
  let timer: NodeJS.Timeout | undefined;
  let failure: unknown;
  let wake = () => {};

  const add = (step: (typeof come)[number]) => {
    come.push(step);
    wake();
  };
  const isFar = () => passed - given.seq >= bookmarks.events;
  /** Gives a bookmark, now or when it is time, unless something else says how far it is before. */
  const look = () => {
    if (come.length > 0 || passed <= given.seq) return;
    const wait = given.at + bookmarks.ms - performance.now();
    if (wait <= 0 || isFar()) add({ type: "bookmark", seq: passed });
    else timer ??= setTimeout(lookAgain, wait);
  };
  const lookAgain = () => {
    timer = undefined;
    look();
  };
  const pass = (seq: number) => {
    passed = seq;
    look();
  };

  const events = read(AbortSignal.any([signal, left.signal]), {
    caughtUp: (seq) => add({ type: "caught_up", seq }),
    reached: pass,
  });
  const ask = async () => {
    try {
      for (;;) {
        const { done, value } = await events.next();
        if (done === true) return add({ type: "end" });
        const { seq } = value;
        if (isWanted(value)) {
          passed = seq - 1;
          if (isFar() && come.length === 0) add({ type: "bookmark", seq: passed });
          return add({ type: "event", seq, recorded: value });
        }
        pass(seq);
      }
    } catch (error) {
      failure = error;
      add({ type: "end" });
    }
  };

  try {
    for (void ask(); ; ) {
      look();
      const step = come.shift();
      if (step === undefined) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      } else if (step.type === "end") {
        if (failure !== undefined) throw failure;
        return;
      } else {
        given = { seq: step.seq, at: performance.now() };
        yield step;
        if (step.type === "event") void ask();
      }
    }
  } finally {
    clearTimeout(timer);
    left.abort();
    events.return().catch(() => {});
  }
}
