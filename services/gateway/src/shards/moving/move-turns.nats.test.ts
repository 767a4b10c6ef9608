import { startTestNats, type TestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { connect, type NatsConnection } from "nats";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { ShardMap } from "../shard-map.ts";
import { MoveTurns } from "./move-turns.ts";
import { MovesEntry } from "./moves-entry.ts";
import type { Turn } from "./turn.ts";

const cleanup = new AsyncDisposableStack();
let server: TestNats;
let connection: NatsConnection;
beforeAll(async () => {
  server = cleanup.use(await startTestNats());
  connection = cleanup.adopt(await connect({ servers: server.url }), (nc) => nc.close());
});
afterAll(() => cleanup.disposeAsync());

const entryOn = (nats: NatsConnection) => new MovesEntry(() => ({ connection: nats }));

beforeEach(async () => {
  const entry = entryOn(connection);
  await entry.write({ unfinished: [] }, (await entry.read()).revision);
});

/** Turns of a gateway. One that is silent never renews. */
const turnsOf = (heldMs = 60_000, renewMs = 60_000) => new MoveTurns(entryOn(connection), { heldMs, renewMs });

const move = (workspace: string) => ({ workspace, from: "home", to: "two", who: "ops", kind: "token" as const });

/** @throws Error when another one has it */
async function taken(turns: MoveTurns): Promise<Turn> {
  const turn = await turns.take();
  if (turn === undefined) throw new Error("another one has the turn");
  return turn;
}

it("is one gateway's at a time, and the next one's when it is given back", async () => {
  const [one, other] = [turnsOf(), turnsOf()];
  const turn = await taken(one);
  expect([await other.take(), await one.take()]).toEqual([undefined, undefined]);
  await turn[Symbol.asyncDispose]();
  expect(turn.over.aborted).toBe(true);
  await using _ = await taken(other);
  expect(await one.take()).toBeUndefined();
});

it("is one gateway's when many take it at the same moment", async () => {
  const all = await Promise.all(Array.from({ length: 8 }, () => turnsOf().take()));
  const got = all.filter((turn) => turn !== undefined);
  expect(got).toHaveLength(1);
  for (const turn of got) await turn[Symbol.asyncDispose]();
});

it("is another one's when it was not renewed, and the first one hears of it", async () => {
  const first = await taken(turnsOf());
  await first.add(move("acme"));
  const other = turnsOf(1);
  const turn = await until(async () => (await other.take("if unfinished")) ?? false, { message: "the other's turn" });
  expect(turn.unfinished).toEqual([move("acme")]);
  await expect(first.add(move("late"))).rejects.toThrow("another gateway moves workspaces");
  expect(first.over.aborted).toBe(true);
  await first[Symbol.asyncDispose]();
  await turn.remove("acme");
  expect(turn.unfinished).toEqual([]);
  await turn[Symbol.asyncDispose]();
});

it("is not another one's while it is renewed", async () => {
  const entry = entryOn(connection);
  await using turn = await taken(turnsOf(60_000, 1));
  const other = turnsOf(60_000);
  const { revision } = await entry.read();
  await until(async () => (await entry.read()).revision > revision + 20, { message: "twenty renewals" });
  expect([await other.take(), turn.over.aborted]).toEqual([undefined, false]);
});

it("leaves what is unfinished to the next one, and nothing to do otherwise", async () => {
  const [one, other] = [turnsOf(), turnsOf()];
  expect(await other.take("if unfinished")).toBeUndefined();
  const turn = await taken(one);
  await turn.add(move("acme"));
  await turn.add(move("beta"));
  await turn.remove("beta");
  await one[Symbol.asyncDispose]();
  await using next = await other.take("if unfinished");
  expect(next?.unfinished).toEqual([move("acme")]);
});

it("is not in the map of the shards", async () => {
  await using turn = await taken(turnsOf());
  await turn.add(move("acme"));
  const map = new ShardMap({
    shards: [],
    homeWorkspace: "default",
    nats: () => ({ connection }),
    warn: () => {},
    holds: async () => false,
  });
  expect(await map.all()).toEqual([]);
});
