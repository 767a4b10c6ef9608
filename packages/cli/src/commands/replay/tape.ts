import { type Event, TimeSource } from "@tapedeck/proto/tapedeck/v1/event";
import { encodeEvent } from "@tapedeck/shared/events/codec";
import type { FollowOptions, HeldBatches, LogReader, ReadFrom, RecordedEvent } from "@tapedeck/shared/log/log";
import { endOf, laterOf, logStart, type Offset, offsetOf, sequenceOf } from "@tapedeck/shared/log/offset";
import { subjectMatcher } from "@tapedeck/shared/log/subject-match";
import { eventSubject } from "@tapedeck/shared/log/subjects";
import type { SourceName } from "@tapedeck/shared/source";
import { abortable } from "@tapedeck/shared/sync/abortable";
import { Notifier } from "@tapedeck/shared/sync/notifier";

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
  if (first === undefined) throw new RangeError("the session has no events to replay");
  const source = first.source as SourceName;
  const times = upstreamTimes(events);
  const recorded = events.map(
    (event, index): RecordedEvent => ({
      offset: offsetOf(index + 1),
      recordedAt: new Date(times[index] ?? 0),
      subject: eventSubject(source, event.channel, event.kind),
      event,
    }),
  );
  return new SessionTape(source, first.session, recorded);
}

class SessionTape implements Tape {
  readonly source: SourceName;
  readonly session: string;
  readonly events: readonly RecordedEvent[];
  readonly reader: LogReader;
  readonly #changed = new Notifier();
  #played = 0;

  constructor(source: SourceName, session: string, events: readonly RecordedEvent[]) {
    this.source = source;
    this.session = session;
    this.events = events;
    this.reader = new TapeReader(this, this.#changed);
  }

  get played(): number {
    return this.#played;
  }

  next(): RecordedEvent | undefined {
    const one = this.events[this.#played];
    if (one === undefined) return undefined;
    this.#played++;
    this.#changed.ring();
    return one;
  }
}

/** The played events, as a log. */
class TapeReader implements LogReader {
  readonly epoch = "replay";
  readonly formerEpochs = [];
  readonly #tape: Pick<Tape, "events" | "played">;
  readonly #changed: Notifier;

  constructor(tape: Pick<Tape, "events" | "played">, changed: Notifier) {
    this.#tape = tape;
    this.#changed = changed;
  }

  get pages() {
    return this;
  }

  async bounds() {
    const { played } = this.#tape;
    // It is in memory, and takes nothing on disk.
    return { firstOffset: offsetOf(1), lastOffset: endOf(played), messages: played, bytes: 0 };
  }

  async now() {
    return { at: new Date(), lastOffset: endOf(this.#tape.played) };
  }

  async lastMatch(subjects: readonly string[]): Promise<Offset> {
    const matches = subjectMatcher(subjects);
    return this.#played().findLast(({ subject }) => matches(subject.split(".")))?.offset ?? logStart;
  }

  async firstSince(time: Date): Promise<Offset | undefined> {
    return this.#played().find(({ recordedAt }) => recordedAt >= time)?.offset;
  }

  async *read(offsets: readonly Offset[]) {
    const { events, played } = this.#tape;
    for (const offset of offsets) {
      const index = sequenceOf(offset) - 1;
      const one = index < played ? events[index] : undefined;
      if (one?.offset === offset) yield one;
    }
  }

  async *history({ afterOffset, subjects }: ReadFrom, untilOffset: Offset, signal: AbortSignal) {
    const matches = subjectMatcher(subjects);
    const { events, played } = this.#tape;
    for (const one of events.slice(sequenceOf(afterOffset), Math.min(sequenceOf(untilOffset), played))) {
      if (signal.aborted) return;
      if (matches(one.subject.split("."))) yield one;
    }
  }

  async *follow(from: ReadFrom, { signal, caughtUp, reached }: FollowOptions) {
    let done = from.afterOffset;
    let announce = caughtUp;
    while (!signal.aborted) {
      const changed = this.#changed.next();
      const end = endOf(this.#tape.played);
      yield* this.history({ ...from, afterOffset: done }, end, signal);
      done = laterOf(done, end);
      announce?.(done);
      announce = undefined;
      reached?.(done);
      await abortable(changed, signal).catch(() => {});
    }
  }

  readBatches(offsets: readonly Offset[]) {
    return oneEach(this.read(offsets));
  }

  /** A file has all of its events. */
  async assertRetained(): Promise<void> {}

  historyBatches(...read: Parameters<LogReader["history"]>) {
    return oneEach(this.history(...read));
  }

  followBatches(...read: Parameters<LogReader["follow"]>) {
    return oneEach(this.follow(...read));
  }

  #played(): readonly RecordedEvent[] {
    return this.#tape.events.slice(0, this.#tape.played);
  }
}

async function* oneEach(events: AsyncGenerator<RecordedEvent, void>): HeldBatches {
  for await (const recorded of events) {
    const { offset, subject, event } = recorded;
    yield [{ offset, subject, bytes: encodeEvent(event), isShared: false, decode: () => recorded }];
  }
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
