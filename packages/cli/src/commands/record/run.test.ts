import { type FakeSkaffold, startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { startRecorder, type TestRecorder } from "../../testing/recorder.ts";
import { framesOf, has, lines, recording, reports, said, users } from "./testing/users.ts";

// What waits while another tap has its source, and all that `record --waiting` says: run.long.test.ts.

const user = users();

async function playTo(fake: FakeSkaffold, recorder: TestRecorder): Promise<void> {
  await until(() => fake.peers.size > 0, { message: "the tap to come" });
  await fake.play();
  await has(recorder, "v1");
  await has(recorder, "v2");
}

it.concurrent("records what runs already, waits for it, goes on with the next one, and says each change in one line", async () => {
  await using recorder = await startRecorder();
  const { record, waiting } = user(recorder.address);
  const first = await startFakeSkaffold({ recording, port: await ownPort() });
  const { address, port } = first;
  await using cli = record(address, "--label", "ticket=7", "--project", "My Shop", "--set", "logs=off");
  await playTo(first, recorder);
  await first.end("kill");
  await reports(cli, "lost");
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

it.concurrent("items that were not taken wait, and the same command takes them up as the same tap", async () => {
  const { port, address, ...stopped } = await startRecorder({ port: await ownPort() });
  await stopped[Symbol.asyncDispose]();
  const { record, waiting } = user(address);
  await using fake = await startFakeSkaffold({ recording });
  await using before = record(fake.address);
  await reports(before, "connected to");
  await fake.play();
  await reports(before, `not recorded yet: nothing listens at ${address}`);
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

it.concurrent("takes another name where the source is taken, and the token's developer, and says so", async () => {
  await using recorder = await startRecorder({ taken: ["shop"], developer: "dora" });
  const { cli, run } = user(recorder.address);
  await using fake = await startFakeSkaffold({ recording });
  await using recording2 = cli(["record", "--upstream", "skaffold", "--address", fake.address]);
  await reports(recording2, "dora/shop is already recorded by another tap: this one is recorded as dora/shop-2");
  expect(await reports(recording2, `recording as default/dora/shop-2/skaffold at ${recorder.address}`)).toBe(true);

  const ran = run("alice", { TAPEDECK_PROJECT: "blog" });
  expect(await ran.ended).toBe(0);
  expect(ran.stderr()).toBe("tapedeck: this is recorded as dora/blog, because the token belongs to dora\n");
  const silent = cli(["run", "--project", "blog", "--", "skaffold", "build"]);
  expect(await silent.ended).toBe(0);
  expect(silent.stderr()).toBe("");
});

it.concurrent("items that `run` left go to the Tapedeck that they were meant for, in order, with the next `run`", async () => {
  const { port, address, ...stopped } = await startRecorder({ port: await ownPort() });
  await stopped[Symbol.asyncDispose]();
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

it.concurrent("`record --waiting` takes what waits for an address that is no more", async () => {
  const { address, ...stopped } = await startRecorder({ port: await ownPort() });
  await stopped[Symbol.asyncDispose]();
  const { run, cli, waiting } = user(address);
  expect(await run("alice").ended).toBe(0);
  await using elsewhere = await startRecorder();
  await using moved = cli(["record", "--waiting", address, "--url", elsewhere.url]);
  expect(await moved.ended).toBe(0);
  expect(lines(moved)).toEqual(["delivered the waiting recording of alice/shop"]);
  expect(elsewhere.hellos.map(({ developer }) => developer)).toEqual(["alice"]);
  expect(waiting()).toEqual([]);
});

it.concurrent("is refused with a sentence where something is missing", async () => {
  const cli = user("127.0.0.1:9").cli(["record"]);
  expect(await cli.ended).toBe(1);
  expect(cli.stderr()).toBe(
    "tapedeck: specify what to record, such as --upstream skaffold --address 127.0.0.1:50051.\n",
  );
});
