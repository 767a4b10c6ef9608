import { decodeEvent } from "../events/codec.ts";
import type { Delivered } from "./consumer.ts";
import type { RecordedEvent } from "./log.ts";
import { offsetOf, type Sequence } from "./offset.ts";

export type Warn = (message: string, fields?: Readonly<Record<string, unknown>>) => void;

/** Undefined when the message is not an event. */
export type Decode<T = RecordedEvent> = (message: Delivered) => T | undefined;

const maxReported = 1_000;

/** Reports a message that is not an event once and skips it, so that it can't stop all readers. */
export function decoder(
  warn: Warn,
): (message: Pick<Delivered, "seq" | "recordedAtMs" | "subject" | "data">) => RecordedEvent | undefined {
  const reported = new Set<Sequence>();
  return ({ seq, recordedAtMs, subject, data }) => {
    try {
      return { offset: offsetOf(seq), recordedAt: new Date(recordedAtMs), subject, event: decodeEvent(data) };
    } catch (err) {
      if (!reported.has(seq) && reported.size < maxReported) {
        reported.add(seq);
        warn("a message of the log is not an event and is skipped", { seq, subject, err });
      }
      return undefined;
    }
  };
}
