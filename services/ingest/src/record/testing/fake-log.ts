import { decodeEvent } from "@tapedeck/shared/events/codec";
import type { LastOfSource, LogWriter, NewMessage, PublishOutcome, RecordedEvent } from "@tapedeck/shared/log/log";
import { endOf, logStart, offsetOf, sequenceOf } from "@tapedeck/shared/log/offset";
import { subjectMatcher } from "@tapedeck/shared/log/subject-match";
import type { LogHistoryReader } from "../journal/load-history.ts";

export type FakeLogMessage = { readonly seq: number; readonly writer: string; readonly message: NewMessage };

/** What becomes of one publish. `lands`: when the server takes it; `answers`: whether the client hears of it. */
export type Fate = { readonly lands: "now" | "late" | "never"; readonly answers: boolean; readonly refuses?: boolean };

export type FakeLog = LogWriter & {
  readonly stored: readonly FakeLogMessage[];
  readonly recorded: () => RecordedEvent[];
  readonly reader: LogHistoryReader;
  /** Lets everything land that was on its way. */
  landLate(): void;
};

export type FakeLogOptions = {
  readonly lastOfFails?: () => boolean;
  /** Before a publish does anything. */
  readonly onPublish?: (messages: readonly NewMessage[]) => void | Promise<void>;
};

/** One source's log in memory, with the server's rules for expectations and batches, and a network that loses things. */
export function fakeLog(fate: () => Fate, { lastOfFails = () => false, onPublish }: FakeLogOptions = {}): FakeLog {
  const stored: FakeLogMessage[] = [];
  let late: (() => void)[] = [];
  let seq = 0;

  const land = (writer: string, messages: readonly NewMessage[], expected: number): PublishOutcome => {
    if ((stored.at(-1)?.seq ?? 0) !== expected) return { outcome: "wrong-sequence" };
    for (const message of messages) {
      // Other sources' messages take sequences too, but never inside a batch.
      seq += 1;
      stored.push({ seq, writer, message });
    }
    const lastSeq = seq;
    seq += 2;
    return { outcome: "acknowledged", lastSeq };
  };

  const landLate = () => {
    const landing = late;
    late = [];
    for (const one of landing) one();
  };

  const recorded = (): RecordedEvent[] =>
    stored.map(({ seq, message }) => ({
      offset: offsetOf(seq),
      recordedAt: new Date(0),
      subject: message.subject,
      event: decodeEvent(message.event),
    }));
  const matching = (subjects: readonly string[]) => {
    const matches = subjectMatcher(subjects);
    return recorded().filter(({ subject }) => matches(subject.split(".")));
  };

  return {
    stored,
    recorded,
    reader: {
      bounds: async () => ({ firstOffset: offsetOf(1), lastOffset: endOf(seq) }),
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
      return last && { seq: last.seq, mark: { writer: last.writer, cursor: last.message.cursor } };
    },
    async publish(_source, writer, messages, expected) {
      await onPublish?.(messages);
      const { lands, answers, refuses } = fate();
      if (refuses) return { outcome: "refused", cause: new Error("storage full") };
      if (lands === "late") late.push(() => land(writer, messages, expected));
      if (lands !== "now") return { outcome: "unknown", cause: new Error("timeout") };
      const published = land(writer, messages, expected);
      return answers ? published : { outcome: "unknown", cause: new Error("the answer was lost") };
    },
  };
}
