import { decodeEvent } from "@tapedeck/shared/events/codec";
import { labelsOf } from "@tapedeck/shared/log/batch/batch";
import {
  fitTogether,
  type LastOfSource,
  type LogWriter,
  type NewEvent,
  type PublishOutcome,
  type RecordedEvent,
} from "@tapedeck/shared/log/log";
import { endOf, logStart, offsetOf, sequenceOf } from "@tapedeck/shared/log/offset";
import { subjectMatcher } from "@tapedeck/shared/log/subject-match";
import { eventSubjectsIn } from "@tapedeck/shared/log/subjects";
import type { LogHistoryReader } from "../journal/load-history.ts";

/** An event, and the message that holds it. */
export type FakeLogEvent = {
  readonly seq: number;
  readonly index: number;
  readonly writer: string;
  readonly written: NewEvent;
};

/** What becomes of one publish. `lands`: when the server takes it; `answers`: whether the client hears of it. */
export type Fate = { readonly lands: "now" | "late" | "never"; readonly answers: boolean; readonly refuses?: boolean };

export type FakeLog = LogWriter & {
  readonly stored: readonly FakeLogEvent[];
  readonly recorded: () => RecordedEvent[];
  readonly reader: LogHistoryReader;
  /** Lets everything land that was on its way. */
  landLate(): void;
};

export type FakeLogOptions = {
  readonly lastOfFails?: () => boolean;
  /** Before a publish does anything. */
  readonly onPublish?: (events: readonly NewEvent[]) => void | Promise<void>;
};

/** One source's log in memory, with the server's rule for expectations, and a network that loses things. */
export function fakeLog(fate: () => Fate, { lastOfFails = () => false, onPublish }: FakeLogOptions = {}): FakeLog {
  const stored: FakeLogEvent[] = [];
  let late: (() => void)[] = [];
  let seq = 0;

  const land = (writer: string, events: readonly NewEvent[], expected: number): PublishOutcome => {
    if ((stored.at(-1)?.seq ?? 0) !== expected) return { outcome: "wrong-sequence" };
    const landed = seq + 1;
    stored.push(...events.map((written, index) => ({ seq: landed, index, writer, written })));
    // Other sources' messages take sequences too.
    seq += 3;
    return { outcome: "acknowledged", seq: landed };
  };

  const landLate = () => {
    const landing = late;
    late = [];
    for (const one of landing) one();
  };

  const recorded = (): RecordedEvent[] =>
    stored.map(({ seq, index, written }) => {
      const { channel, kind } = labelsOf(written.event);
      return {
        offset: offsetOf(seq, index),
        recordedAt: new Date(0),
        subject: eventSubjectsIn(written.subject)(channel, kind),
        event: decodeEvent(written.event),
      };
    });
  const matching = (subjects: readonly string[]) => {
    const matches = subjectMatcher(subjects);
    return recorded().filter(({ subject }) => matches(subject.split(".")));
  };

  return {
    stored,
    recorded,
    reader: {
      bounds: async () => ({ firstOffset: offsetOf(1), lastOffset: endOf(seq), messages: seq, bytes: 0 }),
      lastMatch: async (subjects) => endOf(sequenceOf(matching(subjects).at(-1)?.offset ?? logStart)),
      firstSince: async () => recorded()[0]?.offset,
      async *history({ afterOffset, subjects }, untilOffset) {
        for (const one of matching(subjects)) {
          if (one.offset > afterOffset && one.offset <= untilOffset) yield one;
        }
      },
    },
    landLate,
    async lastOf(): Promise<LastOfSource | undefined> {
      await Promise.resolve();
      if (lastOfFails()) throw new Error("no answer");
      const last = stored.at(-1);
      return last && { seq: last.seq, mark: { writer: last.writer, cursor: last.written.cursor } };
    },
    async publish(_source, writer, events, expected) {
      const [first] = events;
      if (first === undefined || !events.every((event) => fitTogether(first, event))) {
        throw new RangeError("events that don't make a message");
      }
      await onPublish?.(events);
      const { lands, answers, refuses } = fate();
      if (refuses) return { outcome: "refused", cause: new Error("storage full") };
      if (lands === "late") late.push(() => land(writer, events, expected));
      if (lands !== "now") return { outcome: "unknown", cause: new Error("timeout") };
      const published = land(writer, events, expected);
      return answers ? published : { outcome: "unknown", cause: new Error("the answer was lost") };
    },
  };
}
