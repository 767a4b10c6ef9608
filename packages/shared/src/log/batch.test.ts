import { Event, Original } from "@tapedeck/proto/tapedeck/v1/event";
import { RecordBatch } from "@tapedeck/proto/tapedeck/v1/log";
import { expect, it } from "vitest";
import { decodeEvent, encodeEvent } from "../events/codec.ts";
import { sourceName } from "../source.ts";
import { testEvent } from "../testing/log-messages.ts";
import { encodeBatch, eventsIn, frameOf, labelsOf, sessionOf } from "./batch.ts";
import { indexesPerMessage } from "./offset.ts";

const alice = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });

it.each([0, 100, 127, 128, 16_383, 16_384, 2_097_152])(
  "events of %i bytes more come back, as the wire says",
  (size) => {
    const original = Original.fromPartial({ type: "x", bytes: Buffer.alloc(size, 7) });
    const events = [1, 2, 3].map((ordinal) => testEvent(alice, ordinal, { original }));
    const body = encodeBatch(events.map(encodeEvent));
    expect(eventsIn(body).map(decodeEvent)).toEqual(events);
    expect(RecordBatch.decode(body)).toEqual(RecordBatch.fromPartial({ events }));
    expect(Buffer.from(RecordBatch.encode({ events }).finish()).equals(body)).toBe(true);
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

it.each([
  ["nothing", new Uint8Array()],
  ["text", new TextEncoder().encode("no event")],
  ["bytes", new Uint8Array([255, 255, 255])],
  ["half a batch", encodeBatch([encodeEvent(testEvent(alice, 1))]).slice(0, -1)],
  ["more events than a position can count", encodeBatch(Array(indexesPerMessage + 1).fill(new Uint8Array()))],
])("%s is no batch", (_, body) => {
  expect(() => eventsIn(body)).toThrow();
});
