import { RecordBatch } from "@tapedeck/proto/tapedeck/v1/log";
import { expect, it } from "vitest";
import { sourceName } from "../../source.ts";
import { newEvent } from "../../testing/log-messages.ts";
import { encodeBatch } from "../batch/batch.ts";
import type { NewEvent } from "../log.ts";
import { offsetOf } from "../offset.ts";
import { eventSubject } from "../subjects.ts";
import { type EventSelection, messageReader } from "./decode.ts";

const source = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });

it("reads of a message only the events at the offsets that are wanted", () => {
  const warnings: string[] = [];
  const readMessage = messageReader((message) => warnings.push(message));
  const noEvent = Uint8Array.of(0xff, 0xff);
  const { event, subject } = newEvent(source, 1);
  const message = { seq: 5, recordedAtMs: 0, subject, data: encodeBatch([event, noEvent, event, noEvent, event]) };
  const offsetsOf = (which?: EventSelection) => readMessage(message, which).map(({ offset }) => offset);

  const expected = [offsetOf(5, 2), offsetOf(5, 4)];
  expect(offsetsOf({ at: (offset) => expected.includes(offset) })).toEqual(expected);
  expect(offsetsOf({ at: (offset) => expected.includes(offset), of: () => false })).toEqual([]);
  // The bytes that are not an event were not looked at. They are when everything is wanted.
  expect(warnings).toEqual([]);
  expect(offsetsOf()).toEqual([offsetOf(5, 0), ...expected]);
  expect(warnings).toHaveLength(1);
});

it("reads of events of unwanted channels nothing further", () => {
  const readMessage = messageReader(() => {});
  const [v1, v2] = [newEvent(source, 1, { channel: "v1" }), newEvent(source, 1, { channel: "v2" })];
  const data = encodeBatch([v2.event, v1.event, v2.event, v1.event]);
  const message = { seq: 5, recordedAtMs: 0, subject: v1.subject, data };
  const asked: string[] = [];
  const of = (subject: string) => asked.push(subject) > 0;
  const read = readMessage(message, { ofChannel: (channel) => channel === "v1", of });
  expect(read.map(({ offset }) => offset)).toEqual([offsetOf(5, 1), offsetOf(5, 3)]);
  expect(asked).toEqual(read.map(({ subject }) => subject));
  expect(new Set(asked)).toEqual(new Set([eventSubject(source, "v1", "build.started")]));
});

it("gives no event of a message that is no batch, though that shows only at its end", () => {
  const warnings: string[] = [];
  const readMessage = messageReader((message) => warnings.push(message));
  const { event, subject } = newEvent(source, 1);
  const data = encodeBatch([event, event]).slice(0, -1);
  expect(readMessage({ seq: 5, recordedAtMs: 0, subject, data })).toEqual([]);
  expect(warnings).toHaveLength(1);
});

it("decompresses of a message only the channels that are wanted", () => {
  const warnings: string[] = [];
  const readMessage = messageReader((message) => warnings.push(message));
  const summary = "x".repeat(2_000);
  const events = ["v2", "v1", "v2", "v1"].map((channel, at) => newEvent(source, at, { channel, summary }));
  const batch = RecordBatch.decode(encodeBatch(events.map(({ event }) => event)));
  for (const part of batch.channels) if (part.channel === "v2") part.events = Buffer.from("broken");
  const { subject } = events[0] as NewEvent;
  const message = { seq: 5, recordedAtMs: 0, subject, data: RecordBatch.encode(batch).finish() };
  const v1 = readMessage(message, { ofChannel: (channel) => channel === "v1" });
  expect(v1.map(({ offset, bytes }) => [offset, bytes])).toEqual(
    [1, 3].map((index) => [offsetOf(5, index), Buffer.from(events[index]?.event ?? [])]),
  );
  expect(warnings).toEqual([]);
  expect(readMessage(message)).toEqual([]);
  expect(warnings).toHaveLength(1);
});
