import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { expect, it } from "vitest";
import type { RecordedEvent } from "./log.ts";
import { indexesPerMessage, type Offset, offsetOf, type Sequence, sequenceOf } from "./offset.ts";
import { readEvents } from "./read-events.ts";

const never = new AbortController().signal;

const eventAt = (offset: Offset): RecordedEvent => ({
  offset,
  recordedAt: new Date(0),
  subject: "",
  event: Event.fromPartial({ id: `event ${offset}` }),
});

/** 40 messages with so many events each. */
function messagesOf(events: number) {
  const asked: Sequence[] = [];
  const eventsIn = async (sequence: Sequence) => {
    asked.push(sequence);
    if (sequence > 40) return [];
    return Array.from({ length: events }, (_, index) => eventAt(offsetOf(sequence, index)));
  };
  return { asked, eventsIn };
}

async function offsetsRead(offsets: readonly Offset[], { eventsIn }: Pick<ReturnType<typeof messagesOf>, "eventsIn">) {
  return (await Array.fromAsync(readEvents(offsets, eventsIn, never))).map(({ offset }) => offset);
}

it("takes single events out of messages with several, in the order asked for", async () => {
  const offsets = [offsetOf(7, 3), offsetOf(2, 9), offsetOf(2, 1), offsetOf(7), offsetOf(40, 9), offsetOf(1, 5)];
  expect(await offsetsRead(offsets, messagesOf(10))).toEqual(offsets);
});

it("leaves out what the messages do not have", async () => {
  const offsets = [offsetOf(7, 10), offsetOf(41), offsetOf(7, 9)];
  expect(await offsetsRead(offsets, messagesOf(10))).toEqual([offsetOf(7, 9)]);
});

it("asks once for a message whose events follow each other", async () => {
  const messages = messagesOf(indexesPerMessage);
  const offsets = Array.from({ length: 3 * indexesPerMessage }, (_, nth) =>
    offsetOf(1 + Math.floor(nth / indexesPerMessage), nth % indexesPerMessage),
  );
  expect(await offsetsRead(offsets, messages)).toEqual(offsets);
  expect(messages.asked).toEqual([1, 2, 3]);
});

it("holds few messages at once, and asks for no more after its signal aborts", async () => {
  const messages = messagesOf(2);
  const abort = new AbortController();
  const offsets = Array.from({ length: 80 }, (_, nth) => offsetOf(1 + Math.floor(nth / 2), nth % 2));
  for await (const { offset } of readEvents(offsets, messages.eventsIn, abort.signal)) {
    expect(messages.asked.length - sequenceOf(offset)).toBeLessThan(16);
    if (sequenceOf(offset) === 20) abort.abort();
  }
  expect(messages.asked).toHaveLength(32);
});
