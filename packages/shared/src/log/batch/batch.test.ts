import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { Event, Original } from "@tapedeck/proto/tapedeck/v1/event";
import { type ChannelEvents, RecordBatch } from "@tapedeck/proto/tapedeck/v1/log";
import { expect, it } from "vitest";
import { decodeEvent, encodeEvent } from "../../events/codec.ts";
import { sourceName } from "../../source.ts";
import { testEvent } from "../../testing/log-messages.ts";
import { indexesPerMessage } from "../offset.ts";
import { encodeBatch, eventsIn, frameOf, labelsOf, sessionOf } from "./batch.ts";
import { bytesInMemory } from "./channel-events.ts";

const alice = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });

it.each([0, 100, 127, 128, 2_097_152])(
  "small and very large events come back, as the wire says: %i bytes more",
  (size) => {
    const original = Original.fromPartial({ type: "x", bytes: Buffer.alloc(size, 7) });
    const events = [1, 2, 3].map((ordinal) => testEvent(alice, ordinal, { original }));
    const body = encodeBatch(events.map(encodeEvent));
    expect(eventsIn(body).map(decodeEvent)).toEqual(events);
    expect(RecordBatch.decode(body)).toEqual(RecordBatch.fromPartial({ events }));
    expect(Buffer.from(RecordBatch.encode({ events, channels: [] }).finish()).equals(body)).toBe(true);
    expect(bytesInMemory(body)).toBe(body.byteLength);
  },
);

it.each([1_024, 16_383, 16_384, 150_000])(
  "other batches are compressed by channel, as the wire says: %i bytes more",
  (size) => {
    const original = Original.fromPartial({ type: "x", bytes: Buffer.alloc(size, 7) });
    const events = ["v2", "v1", "v2", "v2", "v1"].map((channel, at) => testEvent(alice, at, { channel, original }));
    const encoded = events.map(encodeEvent);
    const body = encodeBatch(encoded);
    expect(eventsIn(body).map(decodeEvent)).toEqual(events);
    expect(Buffer.from(encodeBatch(encoded)).equals(body)).toBe(true);
    const { channels, events: beside } = RecordBatch.decode(body);
    expect(beside).toEqual([]);
    const held = channels.map((part) => {
      const plain = zstdDecompressSync(part.events);
      expect(plain.byteLength).toBe(part.size);
      return { channel: part.channel, indexes: part.indexes, events: RecordBatch.decode(plain).events };
    });
    const of = (channel: string, indexes: readonly number[]) => ({
      channel,
      indexes,
      events: indexes.map((at) => events[at]),
    });
    expect(held).toEqual([of("v2", [0, 2, 3]), of("v1", [1, 4])]);
    expect(body.byteLength).toBeLessThan(size);
    expect(bytesInMemory(body)).toBeGreaterThan(encoded.reduce((sum, { byteLength }) => sum + byteLength, 0));
  },
);

it("labels are read without the rest", () => {
  const bytes = encodeEvent(testEvent(alice, 1, { channel: "v2", kind: "deploy.failed" }));
  expect(labelsOf(bytes)).toEqual({ channel: "v2", kind: "deploy.failed" });
  expect(labelsOf(Event.encode(Event.create({ channel: "v2", summary: "x" })).finish())).toEqual({
    channel: "v2",
    kind: "",
  });
});

it("and so is the session", () => {
  expect(sessionOf(encodeEvent(testEvent(alice, 1, { session: "s-ü" })))).toBe("s-ü");
  expect(sessionOf(encodeEvent(testEvent(alice, 1, { session: "" })))).toBe("");
  expect(sessionOf(new Uint8Array([255]))).toBeUndefined();
});

it.each<[string, Original | undefined, string | undefined]>([
  ["bytes", Original.fromPartial({ type: "x", bytes: Buffer.from("said"), size: 4n }), "said"],
  ["no original", undefined, undefined],
  ["an empty message", Original.fromPartial({ type: "x" }), ""],
  ["a frame that is too large for the log", Original.fromPartial({ type: "x", size: 9_000_000_000n }), undefined],
])("a frame is read without the rest of the event: %s", (_, original, said) => {
  const more = { session: "s-ü", kind: "build.failed", part: 3, summary: "it failed" };
  const event = testEvent(alice, 300, { ...more, ...(original && { original }) });
  const frame = frameOf(encodeEvent(event));
  expect({ ...frame, bytes: frame?.bytes && Buffer.from(frame.bytes).toString() }).toEqual({
    session: "s-ü",
    kind: "build.failed",
    part: 3,
    bytes: said,
  });
});

it("of bytes that are no event there is no frame", () => {
  const bytes = encodeEvent(
    testEvent(alice, 1, { original: Original.fromPartial({ type: "x", bytes: Buffer.alloc(9) }) }),
  );
  for (let length = bytes.length - 1; length > bytes.length - 9; length--) {
    expect(frameOf(bytes.subarray(0, length))).toBeUndefined();
  }
});

const two = () => ({ channels: ["v1", "v2"].map((channel, index) => partOf(channel, [index])), events: [] as Event[] });

function partOf(channel: string, indexes: readonly number[], events = indexes.length, letters = 0): ChannelEvents {
  const summary = "x".repeat(letters);
  const all = Array.from({ length: events }, (_, at) => testEvent(alice, at, { channel, summary }));
  const plain = RecordBatch.encode({ events: all, channels: [] }).finish();
  return { channel, indexes: [...indexes], size: plain.byteLength, events: zstdCompressSync(plain) };
}

function changed(change: (batch: RecordBatch, first: ChannelEvents) => void): Uint8Array {
  const batch: RecordBatch = two();
  change(batch, batch.channels[0] as ChannelEvents);
  return RecordBatch.encode(batch).finish();
}

it("a batch by channel is read that another program has written", () => {
  const events = eventsIn(changed(() => {})).map(decodeEvent);
  expect(events.map(({ channel }) => channel)).toEqual(["v1", "v2"]);
});

const event = encodeEvent(testEvent(alice, 1));

it.each<[string, Uint8Array]>([
  ["nothing", new Uint8Array()],
  ["text", new TextEncoder().encode("no event")],
  ["bytes", new Uint8Array([255, 255, 255])],
  ["half a batch", encodeBatch([event]).slice(0, -1)],
  ["more events than a position can count", encodeBatch(Array(indexesPerMessage + 1).fill(new Uint8Array()))],
  ["half a batch by channel", changed(() => {}).slice(0, -1)],
  ["a batch in both forms", changed((batch) => batch.events.push(testEvent(alice, 1)))],
  ["a batch in both forms, in other order", Buffer.concat([changed(() => {}), encodeBatch([event])])],
  ["bytes that were not compressed", changed((_, first) => Object.assign(first, { events: Buffer.from("no frame") }))],
  ["a channel that is smaller than it says", changed((_, first) => Object.assign(first, { size: first.size + 1 }))],
  ["a channel that is larger than it says", changed((_, first) => Object.assign(first, { size: first.size - 1 }))],
  ["a channel that would fill the memory", changed((_, first) => Object.assign(first, partOf("v1", [0], 1, 2 << 20)))],
  ["two events with one index", changed((_, first) => Object.assign(first, { indexes: [1] }))],
  ["an index that no position has", changed((_, first) => Object.assign(first, { indexes: [indexesPerMessage] }))],
  ["an index without an event", changed((_, first) => Object.assign(first, partOf("v1", [0, 2], 1)))],
  ["an event without an index", changed((_, first) => Object.assign(first, partOf("v1", [0], 2)))],
])("%s is no batch", (_, body) => {
  expect(() => eventsIn(body)).toThrow();
});
