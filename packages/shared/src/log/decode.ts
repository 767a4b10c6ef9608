import { decodeEvent } from "../events/codec.ts";
import type { Delivered } from "./consumer.ts";
import type { Recorded } from "./log.ts";

export type Warn = (message: string, fields?: Readonly<Record<string, unknown>>) => void;

/** Undefined when the message is not an event. */
export type Decode<T = Recorded> = (message: Delivered) => T | undefined;

const mostTold = 1_000;

/** A message that is not an event is told once and skipped, so that one of them can't stop all readers. */
export function decoder(warn: Warn): Decode {
  const told = new Set<number>();
  return ({ seq, recordedAtMs, subject, data }) => {
    try {
      return { seq, recordedAt: new Date(recordedAtMs), subject, event: decodeEvent(data) };
    } catch (err) {
      if (!told.has(seq) && told.size < mostTold) {
        told.add(seq);
        warn("a message of the log is not an event and is skipped", { seq, subject, err });
      }
      return undefined;
    }
  };
}
