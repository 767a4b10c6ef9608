import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { endOf, type Offset, offsetOf, type Sequence, sequenceOf } from "@tapedeck/shared/log/offset";
import { expect, it } from "vitest";
import { scenario } from "../testing/scenario.ts";
import { type Batch, batches } from "./batches.ts";

const event = scenario().add({ kind: "source.added" });
const recorded = (seq: Sequence): RecordedEvent => ({
  event,
  offset: offsetOf(seq),
  recordedAt: new Date(0),
  subject: "",
});
const open = new AbortController().signal;

it("reads ahead by one batch at most, and loses nothing", async () => {
  let given = 0;
  async function* stream() {
    while (given < 100) {
      given += 1;
      yield recorded(given);
    }
  }
  const seqs: number[] = [];
  for await (const { events } of batches(stream, { events: 10, bytes: 1_000 }, open)) {
    expect(events.length).toBeLessThanOrEqual(10);
    seqs.push(...events.map(({ offset }) => sequenceOf(offset)));
    expect(given).toBeLessThanOrEqual(seqs.length + 11);
  }
  expect(seqs).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
});

it("reports how far the stream has come, once, also without an event", async () => {
  async function* stream(reached: (offset: Offset) => void) {
    reached(endOf(7));
    yield recorded(8);
    reached(endOf(8));
    reached(endOf(8));
    await reported.promise;
    reached(endOf(8));
    yield recorded(9);
    await new Promise<void>(() => {});
  }
  const reported = Promise.withResolvers<void>();
  const given: Batch[] = [];
  for await (const batch of batches(stream, { events: 10, bytes: 1_000 }, open)) {
    if (given.push(batch) === 2) break;
    reported.resolve();
  }
  expect(given).toEqual([{ events: [recorded(8)], reached: endOf(8) }, { events: [recorded(9)] }]);
});

it("yields the events before a failure of the stream, then throws its error", async () => {
  async function* stream() {
    yield recorded(1);
    throw new Error("broken");
  }
  const seqs: number[] = [];
  const read = async () => {
    for await (const { events } of batches(stream, { events: 10, bytes: 1_000 }, open)) {
      seqs.push(...events.map(({ offset }) => sequenceOf(offset)));
    }
  };
  await expect(read()).rejects.toThrow("broken");
  expect(seqs).toEqual([1]);
});

it("ends when the signal aborts, whatever it waits for", async () => {
  const over = new AbortController();
  async function* stream() {
    yield recorded(1);
    await new Promise<void>(() => {});
  }
  for await (const _ of batches(stream, { events: 10, bytes: 1_000 }, over.signal)) setImmediate(() => over.abort());
});
