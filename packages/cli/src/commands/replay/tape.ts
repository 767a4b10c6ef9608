import { type Event, TimeSource } from "@tapedeck/proto/tapedeck/v1/event";
import type { FollowOptions, LogReader, ReadFrom, RecordedEvent } from "@tapedeck/shared/log/log";
import { subjectMatcher } from "@tapedeck/shared/log/subject-match";
import { eventSubject } from "@tapedeck/shared/log/subjects";
import type { SourceName } from "@tapedeck/shared/source";

/** The events of one session in memory, as a log that grows while they are played. */
export type Tape = {
  readonly source: SourceName;
  readonly session: string;
  readonly events: readonly RecordedEvent[];
  /** How many of them have been played. */
  readonly played: number;
  /** One more happens; undefined when all have. */
  next(): RecordedEvent | undefined;
  readonly reader: LogReader;
};

/** @throws RangeError without any event */
export function tapeOf(events: readonly Event[]): Tape {
  const [first] = events;
  if (first === undefined) throw new RangeError("there is nothing to play");
  const source = first.source as SourceName;
  const times = upstreamTimes(events);
  const recorded = events.map(
    (event, index): RecordedEvent => ({
      seq: index + 1,
      recordedAt: new Date(times[index] ?? 0),
      subject: eventSubject(source, event.channel, event.kind),
      event,
    }),
  );
  const waiting = new Set<() => void>();
  let played = 0;

  async function* history({ afterSeq, subjects }: ReadFrom, untilSeq: number, signal: AbortSignal) {
    const matches = subjectMatcher(subjects);
    for (const one of recorded.slice(afterSeq, Math.min(untilSeq, played))) {
      if (signal.aborted) return;
      if (matches(one.subject.split("."))) yield one;
    }
  }

  async function* follow(from: ReadFrom, { signal, caughtUp, reached }: FollowOptions) {
    let done = from.afterSeq;
    let announce = caughtUp;
    while (!signal.aborted) {
      const end = played;
      yield* history({ ...from, afterSeq: done }, end, signal);
      done = Math.max(done, end);
      announce?.(done);
      announce = undefined;
      reached?.(done);
      if (played === end) await changed(signal);
    }
  }

  function changed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        waiting.delete(wake);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      waiting.add(wake);
      signal.addEventListener("abort", wake);
      if (signal.aborted) wake();
    });
  }

  return {
    source,
    session: first.session,
    events: recorded,
    get played() {
      return played;
    },
    next() {
      const one = recorded[played];
      if (one === undefined) return undefined;
      played++;
      for (const wake of [...waiting]) wake();
      return one;
    },
    reader: {
      epoch: "replay",
      formerEpochs: [],
      bounds: async () => ({ firstSeq: 1, lastSeq: played }),
      now: async () => ({ at: new Date(), lastSeq: played }),
      lastMatch: async (subjects) => {
        const matches = subjectMatcher(subjects);
        return recorded.slice(0, played).findLast(({ subject }) => matches(subject.split(".")))?.seq ?? 0;
      },
      firstSince: async (time) => recorded.slice(0, played).find(({ recordedAt }) => recordedAt >= time)?.seq,
      history,
      follow,
    },
  };
}

/**
 * Milliseconds, never less than before: by the upstream's own clock, as Tapedeck may have seen much of it at once when it
 * connected. What has no time of the upstream's happens with what came before it.
 */
function upstreamTimes(events: readonly Event[]): readonly number[] {
  const own = events.map(({ time_source, occurred_at }) =>
    time_source === TimeSource.TIME_SOURCE_UPSTREAM && occurred_at !== undefined
      ? Number(occurred_at.seconds) * 1_000 + occurred_at.nanos / 1e6
      : undefined,
  );
  let last = own.find((time) => time !== undefined) ?? 0;
  return own.map((time = last) => {
    last = Math.max(last, time);
    return last;
  });
}
