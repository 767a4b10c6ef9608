import { tmpdir } from "node:os";
import { workspaceFilter } from "@tapedeck/shared/log/subjects";
import { until } from "@tapedeck/shared/testing/until";
import { startCli } from "tapedeck/testing/cli";
import { afterAll, beforeAll, expect, it } from "vitest";
import { httpCall } from "../stack/http-call.ts";
import { eventsOf, framesOf, type MoveLine, move } from "./move-harness.ts";
import { linkTo, PushingTap } from "./pushing-tap.ts";
import { startTwoShards, type TwoShards } from "./two-shards.ts";

// team-a begins in home and is moved to `two` while taps push; team-b is in `two` and team-c in home all the time.

const cleanup = new AsyncDisposableStack();
let on: TwoShards;
let everywhere: string;
let [ofA, ofB, recorderOfA, recorderOfB, recorderOfC] = ["", "", "", "", ""];

beforeAll(async () => {
  on = cleanup.use(await startTwoShards({ workspaces: ["team-b"] }));
  everywhere = await on.adminOfAll();
  ofA = await on.token("team-a", "admin");
  ofB = await on.token("team-b", "viewer");
  [recorderOfA, recorderOfB, recorderOfC] = (await Promise.all(
    ["team-a", "team-b", "team-c"].map((workspace) => on.token(workspace, "recorder")),
  )) as [string, string, string];
});
afterAll(() => cleanup.disposeAsync());

const tap = async (token: string, project: string, grpc = on.home.grpc) =>
  cleanup.use(await PushingTap.start({ link: linkTo(grpc, { authorization: `Bearer ${token}` }), project }));

const json = async (path: string, token: string) => {
  const { status, body } = await httpCall(on.home.http, "GET", path, { authorization: `Bearer ${token}` });
  expect([path, status, status === 200 ? "" : body]).toEqual([path, 200, ""]);
  return JSON.parse(body);
};

it("moves while taps push, without loss", async () => {
  const other = await on.furtherGateway();
  const [one, two, viaOther] = await Promise.all([
    tap(recorderOfA, "one"),
    tap(recorderOfA, "two"),
    tap(recorderOfA, "via-other", other.grpc),
  ]);
  const [ofB, ofC] = [await tap(recorderOfB, "of-b"), await tap(recorderOfC, "of-c")];
  const speaking = [one, two, viaOther, ofB, ofC];
  for (const each of speaking) each.push(50);
  await Promise.all(speaking.map((each) => each.recorded()));
  for (const each of speaking) each.speak();

  const lines: MoveLine[] = [];
  let begun: PushingTap | undefined;
  for await (const line of move({ http: on.home.http, token: everywhere, workspace: "team-a", to: "two" })) {
    lines.push(line);
    if (line.step === "copying" && begun === undefined) {
      begun = await tap(recorderOfA, "begun-meanwhile");
      begun.speak();
      speaking.push(begun);
    }
  }
  expect(lines.at(-1)).toEqual({ type: "complete" });
  const before = speaking.map(({ said }) => said.length);
  await until(() => speaking.every(({ said }, index) => said.length > (before[index] ?? 0) + 3), {
    message: "all taps to go on",
  });
  await Promise.all(speaking.map((each) => each.finish()));

  const inTwo = await eventsOf(on.two.log, "team-a");
  for (const each of [one, two, viaOther, begun as PushingTap])
    expect(framesOf(inTwo, each.project)).toEqual(each.said);
  expect(framesOf(await eventsOf(on.two.log, "team-b"), "of-b")).toEqual(ofB.said);
  expect(framesOf(await eventsOf(on.home.log, "team-c"), "of-c")).toEqual(ofC.said);
  expect([...ofB.refusals, ...ofC.refusals]).toEqual([]);
  expect(inTwo.filter(({ kind }) => /gap|lost/.test(kind))).toEqual([]);
  expect(await on.home.log.lastMatch([workspaceFilter("team-a")])).toBe(0);
});

it("ends what is open, so that clients come back to the new shard", async () => {
  const left = new AbortController();
  const stream = async () => {
    const headers = { authorization: `Bearer ${ofB}`, accept: "application/x-ndjson" };
    const response = await fetch(`http://${on.home.http}/api/v1/stream?after=start`, { headers, signal: left.signal });
    const lines: { type: string; position?: string; event?: { source: string }; error?: { code: string } }[] = [];
    const decoder = new TextDecoder();
    const read = async () => {
      let rest = "";
      for await (const chunk of response.body ?? []) {
        const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
        rest = parts.pop() ?? "";
        lines.push(...parts.map((part) => JSON.parse(part)));
      }
    };
    return { lines, over: read().catch((error) => left.signal.aborted || Promise.reject(error)) };
  };
  const before = await stream();
  await until(() => before.lines.some(({ type }) => type === "caught_up"), { message: "history" });
  const moved = await Array.fromAsync(move({ http: on.home.http, token: everywhere, workspace: "team-b", to: "home" }));
  expect(moved.at(-1)).toEqual({ type: "complete" });
  await before.over;
  expect(before.lines.at(-1)).toMatchObject({ type: "error", error: { code: "not_ready" } });
  const after = await stream();
  const count = ({ lines }: typeof before) => lines.filter(({ type }) => type === "event").length;
  // The move adds a checkpoint to each source, which fences its writer.
  await until(() => count(after) >= count(before), { message: "all events in the new shard" });
  left.abort();
  await after.over;
  expect(await on.two.log.lastMatch([workspaceFilter("team-b")])).toBe(0);
});

it("is listed where it is now", async () => {
  expect(await json("/api/v1/shards", everywhere)).toEqual({
    items: [
      { name: "home", state: "ok", workspaces: ["default", "team-b", "team-c"] },
      { name: "two", state: "ok", workspaces: ["team-a"] },
    ],
  });
});

it("is in the tables of the new shard as a rebuild makes them", async () => {
  await on.two.caughtUp();
  const paths = ["sources", "sessions", "operations", "events?after=start&limit=500"];
  const answers = () => Promise.all(paths.map((path) => json(`/api/v1/${path}`, ofA)));
  const before = await answers();
  expect(before[1].items).toHaveLength(4);
  const { status, body } = await httpCall(on.home.http, "POST", "/api/v1/rebuild", {
    authorization: `Bearer ${everywhere}`,
  });
  expect([status, body.trim().split("\n").at(-1)]).toEqual([200, '{"type":"complete"}']);
  expect(await answers()).toEqual(before);
});

it("is refused by the ingest of the old shard, whatever a gateway believes", async () => {
  const metadata = { "tapedeck-key": "test-key", "tapedeck-workspace": "team-a" };
  await using late = await PushingTap.start({
    link: linkTo(on.home.parts.ingest.addresses.grpc, metadata),
    project: "late",
  });
  late.push();
  await until(() => late.refusals.length > 0, { message: "the refusal" });
  expect(late.refusals[0]).toContain('the workspace "team-a" moves to the shard "two": try again in a moment');
  expect(await on.home.log.lastMatch([workspaceFilter("team-a")])).toBe(0);
});

it("is moved and listed by the command", async () => {
  const env = { TAPEDECK_URL: `http://${on.home.http}`, TAPEDECK_TOKEN: everywhere };
  await using moving = startCli(["shard", "move", "team-c", "--to", "two"], { cwd: tmpdir(), env });
  expect([await moving.ended, moving.stderr()]).toEqual([0, expect.any(String)]);
  expect(moving.stdout()).toMatch(/^switched: nothing was recorded for \d+\.\d s\nmoved team-c to two\n$/);
  await using listing = startCli(["shard", "list", "--json"], { cwd: tmpdir(), env });
  expect(await listing.ended).toBe(0);
  expect(JSON.parse(listing.stdout())).toEqual([
    { name: "home", state: "ok", workspaces: ["default", "team-b"] },
    { name: "two", state: "ok", workspaces: ["team-a", "team-c"] },
  ]);
});

it.each([
  ["to a shard that is not there", { workspace: "team-a", to: "three" }, 'there is no shard "three": home, two'],
  [
    "when it is home's own",
    { workspace: "default", to: "two" },
    '"default" is the setting workspace, which stays in home',
  ],
  ["when there is nothing of it", { workspace: "nobody", to: "two" }, 'the workspace "nobody" has no data'],
])("is not moved %s", async (_, target, message) => {
  const lines = await Array.fromAsync(move({ http: on.home.http, token: everywhere, ...target }));
  expect(lines).toMatchObject([{ type: "error", error: { code: "invalid_argument", message } }]);
  const { items } = await json("/api/v1/shards", everywhere);
  expect(items.flatMap(({ workspaces }: { workspaces: string[] }) => workspaces)).not.toContain("nobody");
});

it("is not moved by the admin of one workspace", async () => {
  const lines = await Array.fromAsync(move({ http: on.home.http, token: ofA, workspace: "team-a", to: "home" }));
  expect(lines).toMatchObject([{ type: "error", error: { code: "forbidden" } }]);
});

it("does nothing when it is there already", async () => {
  const lines = await Array.fromAsync(move({ http: on.home.http, token: everywhere, workspace: "team-a", to: "two" }));
  expect(lines).toEqual([{ type: "complete" }]);
});
