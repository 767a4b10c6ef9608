import { LogReplacedError } from "@tapedeck/shared/log/log";
import { offsetOf } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { SinkStore } from "@tapedeck/shared/sinks/sink-store";
import { testEvent } from "@tapedeck/shared/testing/log-messages";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { connectThroughRestarts } from "@tapedeck/shared/testing/nats-connection";
import { afterEach, expect, it } from "vitest";
import { maxParked } from "../definition.ts";
import type { SinkEvent } from "../format/format.ts";
import { noReader } from "../testing/no-reader.ts";
import { sourceOf } from "../testing/sink-harness.ts";
import type { Refused } from "./answers.ts";
import { Parking, parkedOf, stillParked } from "./parking.ts";

let stack = new AsyncDisposableStack();
afterEach(async () => {
  await stack.disposeAsync();
  stack = new AsyncDisposableStack();
});

const of = { workspace: "default", sink: "hook" };
const never = new AbortController().signal;
const refused: Refused = {
  type: "refused",
  isFinal: true,
  isAway: false,
  status: 422,
  error: "no",
  retryAfterMs: undefined,
};

function sinkEvent(ordinal: number): SinkEvent {
  const offset = offsetOf(ordinal);
  const event = testEvent(sourceOf("alice"), ordinal);
  const recorded = { offset, recordedAt: new Date(ordinal), subject: "", event };
  return { recorded, position: formatPosition({ epoch: "gcj869", offset }) };
}

it("keeps what is parked of a log that has replaced the reader's", async () => {
  const nats = stack.use(await startTestNats());
  const connection = stack.adopt(await connectThroughRestarts(nats.url), (nc) => nc.close());
  const store = new SinkStore(connection);
  await (await Parking.open(store, of)).park(sinkEvent(1), refused, 1, never);
  const bounds = () => Promise.reject(new LogReplacedError("former"));
  const log = { ...noReader, epoch: "former", formerEpochs: [], bounds };
  await expect(stillParked(store, log, of, never)).rejects.toThrow(LogReplacedError);
  expect(await parkedOf(store, of)).toHaveLength(1);
});

it("neither counts nor waits for room for an event that is parked already", async () => {
  const nats = stack.use(await startTestNats());
  const connection = stack.adopt(await connectThroughRestarts(nats.url), (nc) => nc.close());
  const store = new SinkStore(connection);
  const parking = await Parking.open(store, of);
  for (let ordinal = 1; ordinal < maxParked; ordinal++) await parking.park(sinkEvent(ordinal), refused, 1, never);
  await parking.park(sinkEvent(1), refused, 2, never);
  expect([parking.count, parking.isFull]).toEqual([maxParked - 1, false]);
  await parking.park(sinkEvent(maxParked), refused, 1, never);
  expect(parking.isFull).toBe(true);
  const again = await Parking.open(store, of);
  await again.park(sinkEvent(1), refused, 3, never);
  expect(again.count).toBe(maxParked);
  expect(await parkedOf(store, of)).toHaveLength(maxParked);
  expect((await parkedOf(store, of))[0]).toMatchObject({ event: "s.v1.1", tries: 3 });
});
