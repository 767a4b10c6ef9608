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

const request = (workspace: string, to: string) => ({ http: on.home.http, token: everywhere, workspace, to });

/** Moves to the end. The gateway may not have noticed yet that the mover before has left. */
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

/** Where a mover is broken off: at the n-th line of a step. */
const breaks = [
  ["copying", 1],
  ["fencing", 1],
  ["comparing", 2],
  ["fencing", 2],
  ["switched", 1],
  ["rebuilding", 1],
] as const;

it("continues wherever a mover was broken off, there and back", { timeout: 480_000 }, async () => {
  await using tap = await startTap("team-k", "kept");
  tap.say(100);
  await tap.recorded();
  tap.speak();
  let to = "two";
  for (const [step, nth] of breaks) {
    const over = new AbortController();
    let seen = 0;
    const lines: MoveLine[] = [];
    for await (const line of move({ ...request("team-k", to), signal: over.signal })) {
      lines.push(line);
      if (line.step === step && ++seen === nth) over.abort();
    }
    expect([step, nth, seen, lines.at(-1)?.type]).toEqual([step, nth, nth, "progress"]);
    await moveAll("team-k", to);
    const { length } = tap.said;
    await until(() => tap.said.length > length + 2, { message: `the tap to go on in ${to}` });
    const [here, other] = to === "two" ? [on.two, on.home] : [on.home, on.two];
    expect(await other.log.lastMatch([workspaceFilter("team-k")])).toBe(0);
    const frames = framesOf(await eventsOf(here.log, "team-k"), "kept");
    expect([step, nth, frames.length]).toEqual([step, nth, new Set(frames).size]);
    to = to === "two" ? "home" : "two";
  }
  await tap.finish();
  const { log } = to === "home" ? on.two : on.home;
  const events = await eventsOf(log, "team-k");
  expect(framesOf(events, "kept")).toEqual(tap.said);
  expect(events.filter(({ kind }) => /gap|lost/.test(kind))).toEqual([]);
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
