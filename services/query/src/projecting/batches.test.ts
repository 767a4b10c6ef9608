import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { expect, it } from "vitest";
import { scenario } from "../testing/scenario.ts";
import { batches } from "./batches.ts";

const event = scenario().add({ kind: "source.added" });
const recorded = (seq: number): RecordedEvent => ({ event, seq, recordedAt: new Date(0), subject: "" });
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
    seqs.push(...events.map(({ seq }) => seq));
    expect(given).toBeLessThanOrEqual(seqs.length + 11);
  }
  expect(seqs).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
});

it("reports that the stream has caught up, also without an event", async () => {
  async function* stream(caughtUp: (position: number) => void) {
    caughtUp(7);
    await new Promise<void>(() => {});
    yield recorded(8);
  }
  for await (const batch of batches(stream, { events: 10, bytes: 1_000 }, open)) {
    expect(batch).toEqual({ events: [], caughtUp: 7 });
    break;
  }
});

it("yields the events before a failure of the stream, then throws its error", async () => {
  async function* stream() {
    yield recorded(1);
    throw new Error("broken");
  }
  const seqs: number[] = [];
  const read = async () => {
    for await (const { events } of batches(stream, { events: 10, bytes: 1_000 }, open)) {
      seqs.push(...events.map(({ seq }) => seq));
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
