import { offsetOf } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { type SinkKey, SinkStore } from "@tapedeck/shared/sinks/sink-store";
import { until } from "@tapedeck/shared/testing/until";
import type { NatsConnection, Subscription } from "nats";
import { afterEach, expect, it } from "vitest";
import { maxParked, type SinkDefinition } from "../definition.ts";
import { startReceiver } from "../testing/receiver.ts";
import { shortTimes, startSinkHarness } from "../testing/sink-harness.ts";
import { parkedOf } from "./parking.ts";
import { RunningSink } from "./running-sink.ts";
import { RunningSinks } from "./running-sinks.ts";
import { defaultSinkTimes } from "./times.ts";

let stack = new AsyncDisposableStack();
afterEach(async () => {
  await stack.disposeAsync();
  stack = new AsyncDisposableStack();
});

const of = { workspace: "default", sink: "hook" };

/** Notes what is read. */
class NotingStore extends SinkStore {
  readonly read: SinkKey["type"][] = [];

  override get(key: SinkKey) {
    this.read.push(key.type);
    return super.get(key);
  }
}

async function harness() {
  const on = stack.use(await startSinkHarness());
  const receiver = stack.use(await startReceiver());
  const store = new NotingStore(on.connection);
  const definition: SinkDefinition = {
    target: receiver.url,
    format: "webhook",
    mode: "structured",
    filter: {},
    headers: {},
    start: "start",
    createdAt: new Date().toISOString(),
    epoch: on.log.epoch,
  };
  await store.put({ ...of, type: "sink" }, definition);
  const deps = {
    store,
    logOf: async () => on.log.reader,
    settings: { allowed: ["127.0.0.1"], page: "" },
    times: { ...defaultSinkTimes, ...shortTimes },
    counts: { delivered: () => {}, attempted: () => {} },
    causeOf: async () => undefined,
    logger: silentLogger,
  };
  const received = () => receiver.accepted.map(({ data }) => data.ordinal);
  return { receiver, store, definition, deps, received, alice: on.writer("alice") };
}

it("a sink that is removed while it delivers sends nothing again, and leaves no cursor", async () => {
  const { store, definition, deps, received, alice } = await harness();
  await alice.append(5);
  await using running = new RunningSink(of, definition, deps);
  await until(() => received().length === 5, { message: "the first events" });
  await until(async () => (await store.get({ ...of, type: "cursor" })).value !== undefined, { message: "the cursor" });
  // Other gateways remove it in this order.
  await store.remove({ ...of, type: "sink" });
  await store.remove({ ...of, type: "cursor" });
  const before = store.read.length;
  await alice.append(1);
  await until(() => store.read.slice(before).includes("cursor"), { message: "it to notice that its cursor is gone" });
  await running[Symbol.asyncDispose]();
  expect((await store.get({ ...of, type: "cursor" })).value).toBeUndefined();
  expect(received()).toEqual([1, 2, 3, 4, 5, 6]);
});

it("a sink that goes on drops what was parked of events that have gone from the log meanwhile", async () => {
  const { store, definition, deps, received, alice } = await harness();
  const lastSeq = await alice.append(2);
  const parked = {
    event: "s.v1.1",
    kind: "build.started",
    tries: 1,
    error: "answered 422",
    at: new Date().toISOString(),
  };
  const placeOf = (sequence: number) => formatPosition({ epoch: definition.epoch ?? "", offset: offsetOf(sequence) });
  for (const sequence of [lastSeq - 1, lastSeq + 1])
    await store.put({ ...of, type: "parked", place: placeOf(sequence) }, parked);
  await using running = new RunningSink(of, { ...definition, start: placeOf(lastSeq - 1) }, deps);
  await until(() => received().length === 1, { message: "it to go on" });
  expect((await running.figures()).parked).toBe(1);
  expect((await parkedOf(store, of)).map(({ position }) => position)).toEqual([placeOf(lastSeq - 1)]);
});

it("a sink that is full goes on although nobody has heard that its parked events were dropped", async () => {
  const { receiver, store, definition, deps, received, alice } = await harness();
  receiver.answer = ({ events: [first] }) => ({ status: first?.type === "dev.tapedeck.sink.test" ? 200 : 400 });
  await alice.append(maxParked + 1);
  const deaf = { subscribe: () => ({ unsubscribe: () => {} }) as Subscription, isClosed: () => false };
  const running = stack.use(new RunningSinks({ ...deps, connection: deaf as unknown as NatsConnection }));
  await running.set([{ ...of, definition, generation: undefined }]);
  const isFull = async () => {
    const { value } = await store.get({ ...of, type: "status" });
    return (value as { readonly state?: string } | undefined)?.state === "full";
  };
  await until(isFull, { message: "the bound" });
  receiver.answer = () => ({ status: 200 });
  for (const { position } of await parkedOf(store, of)) await store.remove({ ...of, type: "parked", place: position });
  await alice.append(1);
  await until(() => received().includes(maxParked + 2), { message: "what came meanwhile" });
});
