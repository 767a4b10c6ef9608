import { spawn, spawnSync } from "node:child_process";
import { expect, it } from "vitest";
import { collect } from "../../testing/cli.ts";
import { type Case, Harnesses, inARow, main, run, testSame } from "./testing/same.ts";

// More in run-same.long.test.ts.

const harnesses = new Harnesses();

const cases: readonly Case[] = [
  { title: "one that fails", command: ["skaffold", "build"], env: { STAND_IN_EXIT: "3" }, recorded: 1 },
  {
    title: "one over before anybody could connect",
    command: ["skaffold", "build"],
    env: { STAND_IN_SHORT: "1" },
    recorded: 1,
  },
  { title: "a loop that Ctrl-C ends", command: ["skaffold", "dev"], signal: "SIGINT", recorded: 1 },
  {
    title: "one that fails, with notices that hang",
    command: ["skaffold", "build"],
    env: { STAND_IN_EXIT: "3" },
    notices: true,
    recorded: 1,
  },
  {
    title: "a loop that Ctrl-C ends, with notices",
    command: ["skaffold", "dev"],
    signal: "SIGINT",
    notices: true,
    recorded: 1,
  },
  {
    title: "an event log file with earlier events",
    command: ["bash", "-c", "skaffold build --rpc-port=PORT"],
    env: { SKAFFOLD_EVENT_LOG_FILE: "own.log" },
    written: run,
    recorded: 1,
  },
  { title: "two in a row", command: ["bash", "-c", inARow], recorded: 2 },
  {
    title: "a version that knows no API by variables",
    command: ["skaffold", "build"],
    env: { STAND_IN_OLD: "1" },
    recorded: 0,
  },
];

testSame(harnesses, cases);

it("the terminal is the command's", async ({ skip }) => {
  if (spawnSync("script", ["--version"]).status !== 0) skip("there is no program `script` here");
  const onTerminal = async (command: string) => {
    const { cwd, env } = harnesses.harness({ STAND_IN_EXIT: "5" }, { hasNotices: true });
    await using ran = collect(
      spawn("script", ["-qec", command, "/dev/null"], { cwd, env, stdio: ["pipe", "pipe", "pipe"] }),
    );
    return [await ran.ended, ran.stdout().replace(/^tapedeck: .*\n/gm, "")];
  };
  const plain = await onTerminal("skaffold build");
  expect(plain[1]).toContain('"tty":true');
  expect(await onTerminal(`"${process.execPath}" "${main}" run -- skaffold build`)).toEqual(plain);
  expect(await onTerminal(`"${process.execPath}" "${main}" run --notify -- skaffold build`)).toEqual(plain);
});
