import { ownPort } from "@tapedeck/shared/testing/own-port";
import { expect, it } from "vitest";
import { startRecorder } from "../../testing/recorder.ts";
import { lines, users } from "./testing/users.ts";

const user = users();

it.concurrent("the recording that an earlier command left is in nobody's way while another tap has its source", async () => {
  const { port, address, ...stopped } = await startRecorder({ port: await ownPort() });
  await stopped[Symbol.asyncDispose]();
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

it.concurrent("`record --waiting` takes what waits, for the same address or for one that is no more", async () => {
  const { port, address, ...stopped } = await startRecorder({ port: await ownPort() });
  await stopped[Symbol.asyncDispose]();
  const { run, cli, waiting } = user(address);
  expect(await run("alice").ended).toBe(0);
  await using elsewhere = await startRecorder();
  await using one = cli(["record", "--waiting", "--url", elsewhere.url]);
  expect(await one.ended).toBe(0);
  expect(lines(one)).toEqual([
    `there are no undelivered recordings for ${elsewhere.address}`,
    `1 more waits for ${address}`,
  ]);

  expect(await run("bob").ended).toBe(0);
  await using nothing = cli(["record", "--waiting", "--url", elsewhere.url]);
  expect(await nothing.ended).toBe(0);
  expect(lines(nothing)).toEqual([
    `there are no undelivered recordings for ${elsewhere.address}`,
    `2 more wait for ${address}`,
  ]);
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
