import { jetstreamManager } from "@nats-io/jetstream";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { startTestNats, type TestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { connect, type NatsConnection } from "nats";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ShardMap, type ShardMapOptions } from "./shard-map.ts";

const cleanup = new AsyncDisposableStack();
let server: TestNats;
let connection: NatsConnection;
beforeAll(async () => {
  server = cleanup.use(await startTestNats());
  connection = cleanup.adopt(await connect({ servers: server.url }), (nc) => nc.close());
});
afterAll(() => cleanup.disposeAsync());

const shard = (name: string, workspaces: readonly string[] = [], newWorkspaces = false) => ({
  name,
  workspaces,
  newWorkspaces,
});

/** A gateway's map, and what it warned of. `events`: the shards whose logs have events, by workspace. */
function mapOf(
  shards: ShardMapOptions["shards"],
  events: Readonly<Record<string, readonly string[]>> = {},
  more: Partial<ShardMapOptions> = {},
) {
  const warned: string[] = [];
  const map = new ShardMap({
    shards,
    homeWorkspace: "default",
    nats: () => ({ connection }),
    warn: (message) => warned.push(message),
    holds: async (name, workspace) => events[workspace]?.includes(name) ?? false,
    ...more,
  });
  return { map, warned };
}

it("has a new workspace in the shard that lists it, else in home", async () => {
  const { map } = mapOf([shard("two", ["listed"])]);
  expect(await Promise.all(["listed", "other", "default"].map((name) => map.of(name)))).toEqual([
    "two",
    "home",
    "home",
  ]);
});

it("spreads workspaces that nobody lists over the shards that take new ones", async () => {
  const { map } = mapOf([shard("a", ["mine"], true), shard("b", [], true), shard("c")]);
  const names = Array.from({ length: 200 }, (_, index) => `spread-${index}`);
  const found = await Promise.all(names.map((name) => map.of(name)));
  const count = (name: string) => found.filter((each) => each === name).length;
  expect([count("a") + count("b"), count("a") > 60, count("b") > 60]).toEqual([200, true, true]);
  expect(await map.of("default")).toBe("home");
});

it("leaves a workspace where it began, whatever the settings say later, and says so once", async () => {
  expect(await mapOf([shard("two", ["stays"])]).map.of("stays")).toBe("two");
  const { map, warned } = mapOf([shard("two"), shard("three", ["stays"])]);
  expect([await map.of("stays"), await map.of("stays")]).toEqual(["two", "two"]);
  expect(warned).toEqual(['the workspace "stays" stays in the shard "two", although "three" lists it']);
});

it("finds a workspace in the log that has its events already", async () => {
  const events = { old: ["home"], joined: ["three"] };
  const { map, warned } = mapOf([shard("two", ["old", "joined"], true), shard("three")], events);
  expect([await map.of("old"), await map.of("joined")]).toEqual(["home", "three"]);
  expect(warned).toHaveLength(2);
});

it("refuses a workspace whose events are in two shards, or whose shard is not there", async () => {
  const { map } = mapOf([shard("two")], { torn: ["home", "two"] });
  await expect(map.of("torn")).rejects.toMatchObject({
    code: "internal",
    message: expect.stringContaining('events of the workspace "torn" are in several shards: home, two'),
  });
  expect(await mapOf([shard("gone", ["away"])]).map.of("away")).toBe("gone");
  await expect(mapOf([shard("two")]).map.of("away")).rejects.toMatchObject({
    code: "internal",
    message: expect.stringContaining('is in the shard "gone", which the setting shards does not have'),
  });
});

it("decides once for gateways that ask at the same moment with different settings", async () => {
  const gateways = ["a", "b", "c", "d"].map((name) =>
    mapOf(["a", "b", "c", "d"].map((each) => shard(each, each === name ? ["contested"] : []))),
  );
  const found = await Promise.all(gateways.map(({ map }) => map.of("contested")));
  expect(new Set(found).size).toBe(1);
});

it("decides nothing while a shard can't be asked, and tries again", async () => {
  let isAway = true;
  const holds = async () => {
    if (isAway) throw new TapedeckError("not_ready", "the log can't be reached");
    return false;
  };
  const { map } = mapOf([shard("two", ["waiting"])], {}, { holds });
  await expect(map.of("waiting")).rejects.toMatchObject({ code: "not_ready" });
  isAway = false;
  expect(await map.of("waiting")).toBe("two");
});

it("is not ready while home's NATS is away, but for what it knows", async () => {
  await using other = await startTestNats();
  const nc = await connect({ servers: other.url, maxReconnectAttempts: 0 });
  const { map } = mapOf([shard("two", ["known"])], {}, { nats: () => ({ connection: nc }) });
  expect(await map.of("known")).toBe("two");
  await nc.close();
  expect(await map.of("known")).toBe("two");
  await expect(map.of("unknown")).rejects.toMatchObject({ code: "not_ready" });
});

it("moves an entry, once, and ends the calls of its workspace on every gateway", async () => {
  const over = new AbortController();
  const shards = [shard("two", ["moves", "stays"]), shard("three")];
  const [one, other] = [mapOf(shards).map, mapOf(shards, {}, { pollMs: 5 }).map];
  for (const workspace of ["moves", "stays"])
    for (const map of [one, other]) expect(await map.of(workspace)).toBe("two");
  const [ended, lasting] = [other.stay("moves"), other.stay("stays")];
  const watching = other.watch(over.signal);
  await one.change("moves", { from: "two", to: "three" });
  await one.change("moves", { from: "two", to: "three" });
  expect(await one.of("moves")).toBe("three");
  await until(async () => (await other.of("moves")) === "three", { message: "the other gateway to notice" });
  expect(ended.reason).toMatchObject({ code: "not_ready", message: expect.stringContaining("has moved") });
  expect([lasting.aborted, other.stay("moves").aborted]).toEqual([false, false]);
  await expect(one.change("moves", { from: "two", to: "home" })).rejects.toMatchObject({ code: "internal" });
  expect(await one.all()).toEqual(
    expect.arrayContaining([
      ["moves", "three"],
      ["stays", "two"],
    ]),
  );
  over.abort();
  await watching;
});

it("asks for the shard of a workspace that nobody has called without an entry for it", async () => {
  const { map } = mapOf([shard("two")], { recorded: ["two"] });
  await expect(map.read("mistyped")).rejects.toMatchObject({
    code: "invalid_argument",
    message: 'the workspace "mistyped" has no data',
  });
  expect(await map.read("recorded")).toBe("two");
  const entries = (await map.all()).map(([workspace]) => workspace);
  expect(entries.filter((workspace) => /mistyped|recorded/.test(workspace))).toEqual(["recorded"]);
});

it("reads again only what has changed, also when one of it is elsewhere", async () => {
  const over = new AbortController();
  const names = ["w1", "w2", "w3", "w4"];
  const [mover] = [mapOf([shard("two", names), shard("three"), shard("unknown-there")]).map];
  const { map: other, warned } = mapOf([shard("two"), shard("three", names)], {}, { pollMs: 5 });
  for (const workspace of names) {
    await mover.of(workspace);
    await other.of(workspace);
  }
  // Each read of an entry warns that it is elsewhere than the settings say.
  const readAgain = () => warned.splice(0).map((text) => text.split('"')[1]);
  expect(readAgain()).toEqual(names);
  const [stay1, stay3] = [other.stay("w1"), other.stay("w3")];
  const watching = other.watch(over.signal);
  await mover.change("w1", { from: "two", to: "unknown-there" });
  await mover.change("w2", { from: "two", to: "home" });
  await until(async () => (await other.of("w2")) === "home", { message: "the other gateway to notice" });
  expect(readAgain()).toEqual(["w2"]);
  expect([stay1.aborted, stay3.aborted]).toEqual([true, false]);
  await expect(other.of("w1")).rejects.toThrow('is in the shard "unknown-there"');
  over.abort();
  await watching;
});

it("changes no entry by itself", async () => {
  const { map } = mapOf([shard("two", ["kept"])]);
  await map.of("kept");
  await mapOf([shard("two"), shard("three", ["kept"])]).map.of("kept");
  const jsm = await jetstreamManager(connection);
  const kept = await jsm.streams.info("KV_TAPEDECK_SHARDS", { subjects_filter: "$KV.TAPEDECK_SHARDS.kept" });
  expect(kept.state.subjects).toEqual({ "$KV.TAPEDECK_SHARDS.kept": 1 });
  const entry = await jsm.streams.getMessage("KV_TAPEDECK_SHARDS", { last_by_subj: "$KV.TAPEDECK_SHARDS.kept" });
  expect(entry?.string()).toBe("two");
});
