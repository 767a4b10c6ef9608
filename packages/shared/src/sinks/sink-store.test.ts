import { connect } from "nats";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestNats } from "../testing/nats.ts";
import { until } from "../testing/until.ts";
import { SinkStore } from "./sink-store.ts";

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());
let stores: readonly [SinkStore, SinkStore];

beforeAll(async () => {
  const dial = async () => {
    const nats = stack.use(await startTestNats());
    return new SinkStore(stack.adopt(await connect({ servers: nats.url }), (nc) => nc.close()));
  };
  stores = [await dial(), await dial()];
});

const hook = { workspace: "李", sink: "hook" };

it("changes an entry only at the revision that is expected", async () => {
  const [store] = stores;
  const key = { workspace: "cas", sink: "hook", type: "cursor" } as const;
  const first = await store.put(key, { position: "a" }, { revision: 0 });
  expect(await store.put(key, { position: "b" }, { revision: 0 })).toBeUndefined();
  const second = await store.put(key, { position: "b" }, { revision: first });
  expect(await store.put(key, { position: "c" }, { revision: first })).toBeUndefined();
  expect(await store.get(key)).toEqual({ value: { position: "b" }, revision: second });
  await store.remove(key);
  const { value, revision } = await store.get(key);
  expect(value).toBeUndefined();
  expect(await store.put(key, { position: "d" }, { revision })).toBeGreaterThan(revision);
});

it("lists an entry once that is written while it reads", async () => {
  const [store] = stores;
  const keyOf = (number: number) => ({ workspace: "busy", sink: `hook${number}`, type: "sink" }) as const;
  for (let number = 0; number < 100; number++) await store.put(keyOf(number), { time: 0 });
  for (let time = 1; time <= 3; time++) {
    const listing = store.all(["sink"]);
    for (let number = 0; number < 100; number++) await store.put(keyOf(number), { time });
    const names = (await listing).filter(({ workspace }) => workspace === "busy").map(({ sink }) => sink);
    expect(names).toEqual([...new Set(names)]);
    expect(names).toHaveLength(100);
  }
});

it("has one owner at a time, whose time ends without a write", async () => {
  const [store] = stores;
  const revision = await store.own("one", { revision: 0, ttlMs: 1_000 });
  expect(await store.own("two", { revision: 0, ttlMs: 1_000 })).toBeUndefined();
  expect(await store.owner()).toEqual({ owner: "one", revision });
  await until(async () => (await store.owner()).owner === undefined, { message: "the end of its time" });
  expect(await store.own("two", { revision: 0, ttlMs: 60_000 })).toBeGreaterThan(revision ?? 0);
});

it("gives a backup what is not of the present alone, and takes back what is missing", async () => {
  const [store, empty] = stores;
  await store.put({ ...hook, type: "sink" }, { target: "https://hooks.example/", secret: "whsec_" });
  await store.put({ ...hook, type: "control" }, { paused: true });
  await store.put({ ...hook, type: "cursor" }, { position: "12" });
  await store.put({ ...hook, type: "parked", place: "1100-gcj869" }, { error: "no" });
  await store.put({ ...hook, type: "status" }, { state: "retrying" });
  await store.put({ workspace: "other", sink: "hook", type: "sink" }, {});
  const backup = await store.backUp("李");
  expect(Object.keys(backup).map((key) => key.split(".")[0])).toEqual(["sink", "control", "cursor", "parked"]);

  await empty.put({ ...hook, type: "cursor" }, { position: "99" });
  expect(await empty.putBack(backup, (workspace) => workspace === "other")).toBe(0);
  expect(await empty.putBack(backup, (workspace) => workspace === "李")).toBe(1);
  const revisionOf = async (type: "sink" | "control") => (await empty.get({ ...hook, type })).revision;
  expect(await revisionOf("sink")).toBeGreaterThan(await revisionOf("control"));
  const all = await empty.all(["sink", "control", "cursor", "status", "parked"], hook);
  expect(all.map(({ type, value }) => [type, value])).toEqual([
    ["sink", { target: "https://hooks.example/", secret: "whsec_" }],
    ["control", { paused: true }],
    ["cursor", { position: "99" }],
    ["parked", { error: "no" }],
  ]);
});
