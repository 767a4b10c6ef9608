import { decodeEvent } from "../events/codec.ts";
import type { Delivered } from "./consumer.ts";
import type { Recorded } from "./log.ts";

export type Warn = (message: string, fields?: Readonly<Record<string, unknown>>) => void;

/** Undefined when the message is not an event: it is told and skipped, so that one of them can't stop all readers. */
export function decodeDelivered({ seq, recordedAtMs, subject, data }: Delivered, warn: Warn): Recorded | undefined {
  try {
    return { seq, recordedAt: new Date(recordedAtMs), subject, event: decodeEvent(data) };
  } catch (err) {
    warn("a message of the log is not an event and is skipped", { seq, subject, err });
    return undefined;
  }
}
