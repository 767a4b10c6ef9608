import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { type FakeSkaffold, startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import type { Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, expect, test } from "vitest";
import { type RunningCli, startCli } from "../../testing/cli.ts";
import { startRecorder, type TestRecorder, urlOf } from "../../testing/recorder.ts";
import { installSkaffold, recordingFolder } from "../../testing/skaffold-program.ts";

const folder = recordingFolder("12-skaffold-build-one-shot");
const recording = loadRecording(folder);
const root = mkdtempSync(join(tmpdir(), "tapedeck-record-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const path = installSkaffold(join(root, "bin"));

const framesOf = (items: readonly Item[], channel: "v1" | "v2") =>
  items.flatMap(({ what }) => (what?.$case === "frame" && what.value.channel === channel ? [what.value.bytes] : []));
const said = (channel: "v1" | "v2") => recording.messages[channel].map(({ bytes }) => bytes);

/** A user's folder: a project, and what waits of it. */
function user(to: string) {
  const cwd = mkdtempSync(join(root, "user-"));
  writeFileSync(join(cwd, "skaffold.yaml"), "apiVersion: skaffold/v4\nmetadata:\n  name: shop\n");
  const spill = join(cwd, "spill");
  const env = { PATH: path, TAPEDECK_SPILL: spill, TAPEDECK_URL: urlOf(to), STAND_IN_RECORDING: folder };
  const cli = (args: readonly string[], more = {}) => startCli(args, { cwd, env: { ...env, ...more } });
  return {
    cli,
    run: (developer: string, more = {}) => cli(["run", "--developer", developer, "--", "skaffold", "build"], more),
    record: (address: string, ...more: string[]) =>
      cli(["record", "--upstream", "skaffold", "--address", address, "--developer", "alice", ...more]),
    /** Folders of spills. */
    waiting: () => (existsSync(spill) ? readdirSync(spill).filter((name) => /^[0-9A-Z]{26}$/.test(name)) : []),
  };
}

const lines = ({ stdout }: RunningCli) => stdout().split("\n").slice(0, -1);
const tells = (cli: RunningCli, text: string) =>
  until(() => lines(cli).some((line) => line.includes(text)), { message: `"${text}" to be told` });
const has = ({ items }: TestRecorder, channel: "v1" | "v2") =>
  until(() => framesOf(items, channel).length >= said(channel).length, { message: `all of ${channel}` });

async function playTo(fake: FakeSkaffold, recorder: TestRecorder): Promise<void> {
  await until(() => fake.peers.size > 0, { message: "the tap to come" });
  await fake.play();
  await has(recorder, "v1");
  await has(recorder, "v2");
}

test.concurrent("records what runs already, waits for it, goes on with the next one, and says each change in one line", async () => {
  await using recorder = await startRecorder();
  const { record, waiting } = user(recorder.address);
  const first = await startFakeSkaffold({ recording, port: await ownPort() });
  const { address, port } = first;
  await using cli = record(address, "--label", "ticket=7", "--project", "My Shop", "--set", "logs=off");
  await playTo(first, recorder);
  await first.end("kill");
  await tells(cli, "lost");
  await using second = await startFakeSkaffold({ recording, port });
  await until(() => lines(cli).filter((line) => line.startsWith("connected")).length === 2, { message: "it again" });
  process.kill(cli.child.pid ?? 0, "SIGINT");
  expect(await cli.ended).toBe(0);
  expect(cli.stderr()).toBe("");
  expect(lines(cli)).toEqual([
    `waiting for Skaffold at ${address}; press Ctrl-C to stop`,
    expect.stringMatching(/^(connected to|recording as)/),
    expect.stringMatching(/^(connected to|recording as)/),
    expect.stringMatching(/^lost the connection to Skaffold at /),
    `connected to Skaffold at ${address}`,
    "everything is recorded as default/alice/My Shop/skaffold",
  ]);
  expect(recorder.hellos).toHaveLength(1);
  expect(recorder.hellos[0]).toMatchObject({ project: "My Shop", labels: { ticket: "7", user: expect.any(String) } });
  expect(recorder.items[0]?.what).toMatchObject({ value: { channels: ["v1", "v2"] } });
  expect(framesOf(recorder.items, "v1")).toEqual(said("v1"));
  expect(second.hung).toEqual([]);
  expect(waiting()).toEqual([]);
});

test.concurrent("what was not taken waits, and the same command takes it up as the same tap", async () => {
  const { port, address, ...gone } = await startRecorder({ port: await ownPort() });
  await gone[Symbol.asyncDispose]();
  const { record, waiting } = user(address);
  await using fake = await startFakeSkaffold({ recording });
  await using before = record(fake.address);
  await tells(before, "connected to");
  await fake.play();
  await tells(before, `not recorded yet: nothing listens at ${address}`);
  process.kill(before.child.pid ?? 0, "SIGTERM");
  expect(await before.ended).toBe(1);
  expect(lines(before).at(-1)).toMatch(/^not recorded yet \(.*\): \d+ items wait in .* for the same command, or/);
  const [tap = ""] = waiting();

  await using recorder = await startRecorder({ port });
  await using after = record(fake.address);
  await has(recorder, "v2");
  expect(recorder.hellos.map(({ tap: id, first_index }) => [id, first_index])).toEqual([[tap, 1n]]);
  process.kill(after.child.pid ?? 0, "SIGINT");
  expect(await after.ended).toBe(0);
  // Skaffold has said it to both connections; which of it is new, the recorder sees.
  expect(framesOf(recorder.items, "v1").slice(0, said("v1").length)).toEqual(said("v1"));
  expect(waiting()).toEqual([]);
});

test.concurrent("takes another name where the source is taken, and the token's developer, and says so", async () => {
  await using recorder = await startRecorder({ taken: ["shop"], developer: "dora" });
  const { cli, run } = user(recorder.address);
  await using fake = await startFakeSkaffold({ recording });
  await using recording2 = cli(["record", "--upstream", "skaffold", "--address", fake.address]);
  await tells(recording2, "dora/shop is already recorded by another tap: this one is recorded as dora/shop-2");
  expect(await tells(recording2, `recording as default/dora/shop-2/skaffold at ${recorder.address}`)).toBe(true);

  const ran = run("alice", { TAPEDECK_PROJECT: "blog" });
  expect(await ran.ended).toBe(0);
  expect(ran.stderr()).toBe("tapedeck: this is recorded as dora/blog, because the token belongs to dora\n");
  const silent = cli(["run", "--project", "blog", "--", "skaffold", "build"]);
  expect(await silent.ended).toBe(0);
  expect(silent.stderr()).toBe("");
});

test.concurrent("what `run` left goes to the Tapedeck that it was meant for, in order, with the next `run`", async () => {
  const { port, address, ...gone } = await startRecorder({ port: await ownPort() });
  await gone[Symbol.asyncDispose]();
  const { run, waiting } = user(address);
  const [alices] = [await run("alice").ended, ...waiting()].slice(1);
  expect(await run("bob").ended).toBe(0);
  const [, bobs] = waiting();

  await using other = await startRecorder();
  expect(await run("alice", { TAPEDECK_URL: other.url }).ended).toBe(0);
  expect(other.hellos).toHaveLength(1);
  expect(waiting()).toEqual([alices, bobs]);

  await using recorder = await startRecorder({ port });
  expect(await run("alice").ended).toBe(0);
  // Alice's own first, and before what is new of hers; Bob's as soon as there is time.
  const taps = recorder.hellos.map(({ tap }) => tap);
  expect(taps[0]).toBe(alices);
  expect(taps.length).toBeGreaterThan(1);
  expect(waiting()).not.toContain(alices);
});

test.concurrent("what an earlier one left is in nobody's way while another tap has its source", async () => {
  const { port, address, ...gone } = await startRecorder({ port: await ownPort() });
  await gone[Symbol.asyncDispose]();
  const { run, waiting } = user(address);
  expect(await run("alice").ended).toBe(0);
  await using recorder = await startRecorder({ port, taken: ["shop"] });
  const ran = run("alice");
  expect(await ran.ended).toBe(0);
  expect(ran.stderr()).toBe(
    "tapedeck: alice/shop is already recorded by another tap: this one is recorded as alice/shop-2\n",
  );
  expect(recorder.hellos.map(({ project }) => project)).toEqual(["shop-2"]);
  expect(waiting()).toHaveLength(1);
});

test.concurrent("`record --waiting` takes what waits, for the same address or for one that is no more", async () => {
  const { port, address, ...gone } = await startRecorder({ port: await ownPort() });
  await gone[Symbol.asyncDispose]();
  const { run, cli, waiting } = user(address);
  expect(await run("alice").ended).toBe(0);
  await using elsewhere = await startRecorder();
  await using one = cli(["record", "--waiting", "--url", elsewhere.url]);
  expect(await one.ended).toBe(0);
  expect(lines(one)).toEqual([`nothing is waiting for ${elsewhere.address}`, `1 more waits for ${address}`]);

  expect(await run("bob").ended).toBe(0);
  await using nothing = cli(["record", "--waiting", "--url", elsewhere.url]);
  expect(await nothing.ended).toBe(0);
  expect(lines(nothing)).toEqual([`nothing is waiting for ${elsewhere.address}`, `2 more wait for ${address}`]);
  expect(elsewhere.hellos).toEqual([]);

  await using refusing = await startRecorder({ port, refusal: { code: 7, details: "no such role" } });
  await using refused = cli(["record", "--waiting"]);
  expect(await refused.ended).toBe(1);
  expect(lines(refused).sort()).toEqual([
    expect.stringMatching(/^alice\/shop still waits in .*: no such role$/),
    expect.stringMatching(/^bob\/shop still waits in .*: no such role$/),
  ]);
  expect(refusing.hellos).toEqual([]);

  await using moved = cli(["record", "--waiting", address, "--url", elsewhere.url]);
  expect(await moved.ended).toBe(0);
  expect(lines(moved).sort()).toEqual([
    "delivered the waiting recording of alice/shop",
    "delivered the waiting recording of bob/shop",
  ]);
  expect(elsewhere.hellos.map(({ developer }) => developer).sort()).toEqual(["alice", "bob"]);
  expect(waiting()).toEqual([]);
});

test.concurrent("is refused with a sentence where something is missing", async () => {
  const cli = user("127.0.0.1:9").cli(["record"]);
  expect(await cli.ended).toBe(1);
  expect(cli.stderr()).toBe(
    "tapedeck: specify what to record, such as --upstream skaffold --address 127.0.0.1:50051.\n",
  );
});
