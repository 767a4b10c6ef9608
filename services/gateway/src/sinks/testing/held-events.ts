import type { HeldEvent } from "@tapedeck/shared/log/log";
import { offsetOf } from "@tapedeck/shared/log/offset";
import { testEvent } from "@tapedeck/shared/testing/log-messages";
import { sourceOf } from "./sink-harness.ts";

/** An event as a reader of the log gives it, each in a message of its own. */
export function heldEvent(ordinal: number): HeldEvent {
  const offset = offsetOf(ordinal);
  const event = testEvent(sourceOf("alice"), ordinal);
  const recorded = { offset, recordedAt: new Date(ordinal), subject: "", event };
  return { offset, subject: "", bytes: Buffer.alloc(10), isShared: false, decode: () => recorded };
}

export const heldEvents = (first: number, last: number): readonly HeldEvent[] =>
  Array.from({ length: last - first + 1 }, (_, index) => heldEvent(first + index));
