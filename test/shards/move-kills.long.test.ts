import { workspaceFilter } from "@tapedeck/shared/log/subjects";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, expect, it } from "vitest";
import { httpCall } from "../stack/http-call.ts";
import { eventsOf, framesOf, type MoveLine, move } from "./move-harness.ts";
import { linkTo, PushingTap } from "./pushing-tap.ts";
import { startTwoShards, type TwoShards } from "./two-shards.ts";

// Moves that are broken off, and what happens while one is under way.

const cleanup = new AsyncDisposableStack();
let on: TwoShards;
let everywhere: string;
beforeAll(async () => {
  on = cleanup.use(await startTwoShards({}));
  everywhere = await on.adminOfAll();
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

/** Where a mover is broken off: at the n-th line of a step, by its caller, or by its gateway, which is killed. */
type Break = readonly [step: string, nth: number, by: "caller" | "gateway"];
const breaks: readonly Break[] = [
  ["copying", 1, "caller"],
  ["fencing", 1, "gateway"],
  ["comparing", 2, "gateway"],
  ["fencing", 2, "gateway"],
  ["switched", 1, "caller"],
  ["switched", 1, "gateway"],
  ["rebuilding", 1, "caller"],
];

/** Begins a move to two, and breaks it off. Only a gateway that is killed is one of its own. */
async function breakOff(workspace: string, [step, nth, by]: Break): Promise<void> {
  await using gateway = by === "gateway" ? await on.gatewayProcess() : undefined;
  const over = new AbortController();
  const lines: MoveLine[] = [];
  let [seen, killed] = [0, Promise.resolve()];
  const moving = move({ ...request(workspace, "two", gateway?.addresses.http), signal: over.signal });
  for await (const line of moving) {
    lines.push(line);
    if (line.step !== step || ++seen !== nth) continue;
    if (gateway !== undefined) killed = gateway.kill();
    over.abort();
  }
  await killed;
  expect([seen, lines.at(-1)?.type]).toEqual([nth, "progress"]);
}

it.each(breaks)("continues where a mover was broken off, and back: %s %i, by its %s", async (...each) => {
  const workspace = `team-${each.join("-")}`;
  await using tap = await startTap(workspace, "kept");
  tap.say(100);
  await tap.recorded();
  tap.speak();
  await breakOff(workspace, each);
  for (const to of ["two", "home"] as const) {
    await moveAll(workspace, to);
    const { length } = tap.said;
    await until(() => tap.said.length > length + 2, { message: `the tap to go on in ${to}` });
    const other = to === "two" ? on.home : on.two;
    expect(await other.log.lastMatch([workspaceFilter(workspace)])).toBe(0);
  }
  await tap.finish();
  const events = await eventsOf(on.home.log, workspace);
  expect(framesOf(events, "kept")).toEqual(tap.said);
  expect(events.filter(({ kind }) => /gap|lost/.test(kind))).toEqual([]);
});

it("goes on when its caller leaves while those who write wait", async () => {
  await using tap = await startTap("team-l", "left");
  tap.say(100);
  await tap.recorded();
  tap.speak();
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
  // The same command does what is left: the old shard still has it.
  expect(await on.home.log.lastMatch([workspaceFilter("team-l")])).not.toBe(0);
  await moveAll("team-l", "two");
  expect(await on.home.log.lastMatch([workspaceFilter("team-l")])).toBe(0);
  await tap.finish();
  expect(framesOf(await eventsOf(on.two.log, "team-l"), "left")).toEqual(tap.said);
});

it("brings nothing along of a session that is erased while it is copied", async () => {
  await using gone = await startTap("team-e", "gone");
  await using stays = await startTap("team-e", "stays");
  for (const tap of [gone, stays]) tap.say(30);
  await Promise.all([gone.recorded(), stays.recorded()]);
  gone.end();
  await gone.recorded();
  const { session } = (await eventsOf(on.home.log, "team-e")).find(
    ({ source, kind }) => kind === "session.started" && source.includes("/gone/"),
  ) ?? { session: "" };
  await on.home.caughtUp();
  const authorization = `Bearer ${await on.token("team-e", "admin")}`;
  let isErased = false;
  for await (const { step, type, error } of move(request("team-e", "two"))) {
    expect([type, error]).not.toEqual(["error", expect.anything()]);
    if (step !== "copying" || isErased) continue;
    isErased = true;
    const { status, body } = await httpCall(on.home.http, "DELETE", `/api/v1/sessions/${session}`, { authorization });
    expect([status, body.includes("complete")]).toEqual([200, true]);
  }
  expect(isErased).toBe(true);
  const events = await eventsOf(on.two.log, "team-e");
  expect(framesOf(events, "gone")).toEqual([]);
  expect(events.filter((event) => event.session === session).map(({ kind }) => kind)).toEqual(["session.erased"]);
  expect(framesOf(events, "stays")).toEqual(stays.said);
});
