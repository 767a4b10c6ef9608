import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { expect, it, vi } from "vitest";
import type { HeldEvent } from "../log.ts";
import { indexesPerMessage, type Offset, offsetOf, type Sequence, sequenceOf } from "../offset.ts";
import { besideEachOther, type ReadOneMessage, readEventBatches, readEvents } from "./read-events.ts";

const never = new AbortController().signal;

/** 40 messages with so many events each. */
function messagesOf(events: number) {
  const requests: Sequence[] = [];
  const decoded: Offset[] = [];
  const eventAt = (offset: Offset): HeldEvent => ({
    offset,
    subject: "",
    bytes: undefined,
    isShared: false,
    decode: () => {
      decoded.push(offset);
      return { offset, recordedAt: new Date(0), subject: "", event: Event.fromPartial({ id: `event ${offset}` }) };
    },
  });
  const read: ReadOneMessage = async (sequence, isIncluded) => {
    requests.push(sequence);
    if (sequence > 40) return [];
    const offsets = Array.from({ length: events }, (_, index) => offsetOf(sequence, index));
    return offsets.filter(isIncluded).map(eventAt);
  };
  return { requests: requests, decoded, read };
}

async function offsetsRead(offsets: readonly Offset[], { read }: Pick<ReturnType<typeof messagesOf>, "read">) {
  return (await Array.fromAsync(readEvents(offsets, read, never))).map(({ offset }) => offset);
}

it("decodes no event that is not asked for", async () => {
  const messages = messagesOf(indexesPerMessage);
  const offsets = [offsetOf(2, 9), offsetOf(7, 3)];
  await offsetsRead(offsets, messages);
  expect(messages.decoded).toEqual(offsets);
});

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
  const offsets = Array.from({ length: 3 * indexesPerMessage }, (_, index) =>
    offsetOf(1 + Math.floor(index / indexesPerMessage), index % indexesPerMessage),
  );
  expect(await offsetsRead(offsets, messages)).toEqual(offsets);
  expect(messages.requests).toEqual([1, 2, 3]);
});

it("holds few messages at once, and asks for no more after its signal aborts", async () => {
  const messages = messagesOf(2);
  const abort = new AbortController();
  const offsets = Array.from({ length: 80 }, (_, index) => offsetOf(1 + Math.floor(index / 2), index % 2));
  for await (const { offset } of readEvents(offsets, messages.read, abort.signal)) {
    expect(messages.requests.length - sequenceOf(offset)).toBeLessThan(16);
    if (sequenceOf(offset) === 20) abort.abort();
  }
  expect(messages.requests).toHaveLength(32);
});

it("keeps no messages for a reader that pauses, and reads them again when it goes on", async () => {
  vi.useFakeTimers();
  try {
    const messages = messagesOf(2);
    const offsets = Array.from({ length: 40 }, (_, index) => offsetOf(1 + index));
    const read: Offset[] = [];
    for await (const [held] of readEventBatches(offsets, besideEachOther(messages.read), never)) {
      read.push(held?.offset ?? offsetOf(0));
      if (read.length === 10) vi.advanceTimersByTime(60_000);
    }
    expect(read).toEqual(offsets);
    // The six that were left of the first reading.
    expect(messages.requests.slice(0, 22)).toEqual([...upTo(16), ...upTo(16, 11)]);
    expect(messages.requests).toHaveLength(46);
  } finally {
    vi.useRealTimers();
  }
});

const upTo = (end: number, from = 1) => Array.from({ length: end - from + 1 }, (_, index) => from + index);
