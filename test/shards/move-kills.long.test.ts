import { isDeepStrictEqual } from "node:util";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { workspaceFilter } from "@tapedeck/shared/log/subjects";
import { searched } from "@tapedeck/shared/testing/searches";
import { until } from "@tapedeck/shared/testing/until";
import { connect, headers, type NatsConnection } from "nats";
import { afterAll, beforeAll, expect, it } from "vitest";
import { httpCall } from "../stack/http-call.ts";
import { eventsOf, framesOf, type MoveLine, move } from "./move-harness.ts";
import { linkTo, PushingTap } from "./pushing-tap.ts";
import { startTwoShards, type TwoShards } from "./two-shards.ts";

// Moves that are broken off, and what happens while one is under way.

const cleanup = new AsyncDisposableStack();
let on: TwoShards;
let everywhere: string;
let nats: NatsConnection;
beforeAll(async () => {
  on = cleanup.use(await startTwoShards({}));
  everywhere = await on.adminOfAll();
  await on.furtherGateway(); // one of the two continues a move
  nats = cleanup.adopt(await connect({ servers: on.home.parts.nats.url }), (nc) => nc.close());
});
afterAll(() => cleanup.disposeAsync());

async function startTap(workspace: string, project: string): Promise<PushingTap> {
  const metadata = { authorization: `Bearer ${await on.token(workspace, "recorder")}` };
  return PushingTap.start({ link: linkTo(on.home.grpc, metadata), project });
}

const request = (workspace: string, to: string, http = on.home.http) => ({ http, token: everywhere, workspace, to });

/** Moves to the end. The mover before may not have ended yet. */
async function moveAll(workspace: string, to: string): Promise<void> {
  const lines = await until(
    async () => {
      const all = await Array.fromAsync(move(request(workspace, to)));
      return all.at(-1)?.error?.code !== "limit_exceeded" && all;
    },
    { message: "the mover before to be gone" },
  );
  expect(lines.at(-1)).toEqual({ type: "complete" });
}

/** The shard that has the workspace, as the map says. */
async function shardOf(workspace: string): Promise<string | undefined> {
  const { body } = await httpCall(on.home.http, "GET", "/api/v1/shards", { authorization: `Bearer ${everywhere}` });
  const { items } = JSON.parse(body) as { items: { name: string; workspaces: string[] }[] };
  return items.find(({ workspaces }) => workspaces.includes(workspace))?.name;
}

/** A move takes long enough to be broken off, and the log stays short. */
const pauseMs = 20;

/** Where a mover is broken off: at the n-th line of a step, by its caller, or by its gateway, which gets a signal. */
type Break = readonly [step: string, index: number, by: "caller" | "SIGKILL" | "SIGTERM"];
const breaks: readonly Break[] = [
  ["copying", 1, "caller"],
  ["copying", 1, "SIGKILL"],
  ["fencing", 1, "SIGKILL"],
  ["fencing", 1, "SIGTERM"],
  ["comparing", 2, "SIGKILL"],
  ["comparing", 2, "SIGTERM"],
  ["fencing", 2, "SIGKILL"],
  ["fencing", 2, "SIGTERM"],
  ["switched", 1, "caller"],
  ["switched", 1, "SIGKILL"],
  ["switched", 1, "SIGTERM"],
  ["rebuilding", 1, "caller"],
  ["rebuilding", 1, "SIGKILL"],
];

type MovingGateway = { readonly http?: string; readonly end: () => Promise<void> };

/** Begins a move to two, and breaks it off. */
async function breakOff(workspace: string, [step, index]: Break, { http, end }: MovingGateway): Promise<void> {
  const over = new AbortController();
  const lines: MoveLine[] = [];
  let [seen, ended] = [0, Promise.resolve()];
  for await (const line of move({ ...request(workspace, "two", http), signal: over.signal })) {
    lines.push(line);
    if (line.step !== step || ++seen !== index) continue;
    ended = end();
    over.abort();
  }
  await ended;
  expect([seen, lines.at(-1)?.type]).toEqual([index, "progress"]);
}

/** Only a gateway that gets a signal is one of its own. */
async function breakOffBy(workspace: string, given: Break): Promise<void> {
  const [, , by] = given;
  if (by === "caller") return await breakOff(workspace, given, { end: async () => {} });
  await using gateway = await on.gatewayProcess();
  const { http = "" } = gateway.addresses;
  await breakOff(workspace, given, { http, end: () => gateway.kill(by) });
}

async function goesOn(tap: PushingTap): Promise<void> {
  const { length } = tap.said;
  await until(() => tap.said.length > length + 2, { message: "the tap to go on" });
}

/** Resolves when no gateway moves, or has to continue a move. */
async function nothingMoves(): Promise<void> {
  const jsm = await jetstreamManager(nats);
  const entry = async () => {
    const found = await jsm.streams.getMessage("KV_TAPEDECK_SHARDS", { last_by_subj: "$KV.TAPEDECK_SHARDS.MOVES" });
    return found?.json();
  };
  await until(async () => isDeepStrictEqual(await entry(), { unfinished: [] }), { message: "the end of the move" });
}

const isRemovedFrom = (name: "home" | "two", workspace: string) => async () =>
  (await on[name].log.lastMatch([workspaceFilter(workspace)])) === 0;

/** One of each who breaks off, and of each kind of step: before, while and after writers wait. */
const shortBreaks: readonly Break[] = [
  ["copying", 1, "caller"],
  ["fencing", 1, "SIGKILL"],
  ["fencing", 2, "SIGTERM"],
  ["switched", 1, "SIGKILL"],
];

it.each(searched({ short: shortBreaks, long: breaks }))(
  "is open again without another command, and can go on: %s %i, by %s",
  async (...each) => {
    const [step, index] = each;
    const workspace = `team-${each.join("-").toLowerCase()}`;
    await using tap = await startTap(workspace, "kept");
    tap.push(100);
    await tap.recorded();
    tap.speak(pauseMs);
    await breakOffBy(workspace, each);
    await goesOn(tap);
    if (step !== "copying") await nothingMoves();
    // A gateway that is killed at the first line of `fencing` may not have closed the workspace yet.
    const mayBeIn = { copying: ["home"], fencing: index === 1 ? ["home", "two"] : ["two"] }[step] ?? ["two"];
    expect(mayBeIn).toContain(await shardOf(workspace));
    await moveAll(workspace, "two");
    expect(await isRemovedFrom("home", workspace)()).toBe(true);
    await moveAll(workspace, "home");
    await goesOn(tap);
    expect(await isRemovedFrom("two", workspace)()).toBe(true);
    await tap.finish();
    const events = await eventsOf(on.home.log, workspace);
    expect(framesOf(events, "kept")).toEqual(tap.said);
    expect(events.filter(({ kind }) => /gap|lost/.test(kind))).toEqual([]);
  },
);

it("goes on when its caller leaves while those who write wait", async () => {
  await using tap = await startTap("team-l", "left");
  tap.push(100);
  await tap.recorded();
  tap.speak(pauseMs);
  const over = new AbortController();
  const lines: MoveLine[] = [];
  for await (const line of move({ ...request("team-l", "two"), signal: over.signal })) {
    lines.push(line);
    if (line.step === "fencing") over.abort();
  }
  expect(lines.at(-1)).toMatchObject({ type: "progress", step: "fencing", done: 0 });
  await until(async () => (await shardOf("team-l")) === "two", { message: "the workspace to be in the new shard" });
  const { length } = tap.said;
  await until(() => tap.said.length > length + 2, { message: "the tap to go on there" });
  await until(isRemovedFrom("home", "team-l"), { message: "the old shard to be cleared up" });
  await moveAll("team-l", "two"); // nothing is left to do, and the next one may move
  await tap.finish();
  expect(framesOf(await eventsOf(on.two.log, "team-l"), "left")).toEqual(tap.said);
});

it("brings nothing along of a session that is erased while it is copied", async () => {
  await using leaving = await startTap("team-e", "gone");
  await using stays = await startTap("team-e", "stays");
  for (const tap of [leaving, stays]) tap.push(30);
  await Promise.all([leaving.recorded(), stays.recorded()]);
  leaving.end();
  await leaving.recorded();
  const { session } = (await eventsOf(on.home.log, "team-e")).find(
    ({ source, kind }) => kind === "session.started" && source.includes("/gone/"),
  ) ?? { session: "" };
  await on.home.caughtUp();
  const authorization = `Bearer ${await on.token("team-e", "admin")}`;
  const erase = () => httpCall(on.home.http, "DELETE", `/api/v1/sessions/${session}`, { authorization });
  let answer: string | undefined;
  for await (const { step, type, error } of move(request("team-e", "two"))) {
    expect([type, error]).not.toEqual(["error", expect.anything()]);
    if (step === "copying") answer ??= (await erase()).body;
  }
  // The move may be faster than the mark: then the answer says so, and the caller asks again.
  if (answer?.includes("not_ready") === true) answer = (await erase()).body;
  expect(answer).toContain("complete");
  const events = await eventsOf(on.two.log, "team-e");
  expect(framesOf(events, "gone")).toEqual([]);
  expect(events.filter((event) => event.session === session).map(({ kind }) => kind)).toEqual(["session.erased"]);
  expect(framesOf(events, "stays")).toEqual(stays.said);
});

it("is given up when its operator opens the old shard again before another gateway goes on", async () => {
  await using tap = await startTap("team-g", "kept");
  tap.push(100);
  await tap.recorded();
  await breakOffBy("team-g", ["fencing", 2, "SIGKILL"]);
  // `nats kv del TAPEDECK_MOVES team-g` does the same.
  const operation = headers();
  operation.set("KV-Operation", "DEL");
  await jetstream(nats).publish("$KV.TAPEDECK_MOVES.team-g", "", { headers: operation });
  tap.speak(pauseMs);
  await goesOn(tap);
  await nothingMoves();
  expect(await shardOf("team-g")).toBe("home");
  await moveAll("team-g", "two");
  await tap.finish();
  expect(framesOf(await eventsOf(on.two.log, "team-g"), "kept")).toEqual(tap.said);
});

// The last one: it ends the other gateways.
it("is continued by its own gateway when that is started again", async () => {
  await on.endGateways();
  await using gateway = await on.gatewayProcess();
  const { grpc = "", http } = gateway.addresses;
  const metadata = { authorization: `Bearer ${await on.token("team-s", "recorder")}` };
  await using tap = await PushingTap.start({ link: linkTo(grpc, metadata), project: "kept" });
  tap.push(100);
  await tap.recorded();
  await breakOff("team-s", ["fencing", 2, "SIGKILL"], { ...(http && { http }), end: () => gateway.kill() });
  tap.speak(pauseMs);
  await gateway.start();
  await goesOn(tap);
  await until(isRemovedFrom("home", "team-s"), { message: "the old shard to be cleared up" });
  await tap.finish();
  expect(framesOf(await eventsOf(on.two.log, "team-s"), "kept")).toEqual(tap.said);
});
