import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { asNow, writeEventLog } from "@tapedeck/fakes/skaffold/event-log";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import type { Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, expect, test } from "vitest";
import { collect, type RunningCli } from "../../testing/cli.ts";
import { startRecorder, type TestRecorder } from "../../testing/recorder.ts";
import { installSkaffold, recordingFolder } from "../../testing/skaffold-program.ts";

const build = recordingFolder("12-skaffold-build-one-shot");
const run = recordingFolder("12b-skaffold-run-one-shot");
const main = fileURLToPath(new URL("../../main.ts", import.meta.url));

const root = mkdtempSync(join(tmpdir(), "tapedeck-same-"));
const path = installSkaffold(join(root, "bin"));
let recorder: TestRecorder;
beforeAll(async () => {
  recorder = await startRecorder();
});
afterAll(async () => {
  await recorder[Symbol.asyncDispose]();
  rmSync(root, { recursive: true, force: true });
});

type Case = {
  readonly title: string;
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Sent to the command's whole group, as Ctrl-C is, when it runs. */
  readonly signal?: NodeJS.Signals;
  /** `tapedeck run` sleeps until the signal has ended the command, as on a busy machine. */
  readonly isLate?: boolean;
  /** The recording of a process that wrote to own.log right before the command. */
  readonly written?: string;
  /** How many Skaffold processes are recorded whole. */
  readonly recorded: number;
};

const inARow = `skaffold build && STAND_IN_RECORDING=${run} skaffold run --tail=false; echo "ended with $?"`;

const cases: readonly Case[] = [
  { title: "a command that ends by itself", command: ["skaffold", "build", "-p", "staging"], recorded: 1 },
  { title: "one that fails", command: ["skaffold", "build"], env: { STAND_IN_EXIT: "3" }, recorded: 1 },
  {
    title: "one over before anybody could connect",
    command: ["skaffold", "build"],
    env: { STAND_IN_SHORT: "1" },
    recorded: 1,
  },
  { title: "a loop that Ctrl-C ends", command: ["skaffold", "dev"], signal: "SIGINT", recorded: 1 },
  { title: "a loop that SIGTERM ends", command: ["skaffold", "dev"], signal: "SIGTERM", recorded: 1 },
  ...Array.from({ length: 3 }, (_, nth) => ({
    title: `a loop that ends before Ctrl-C comes, ${nth + 1}`,
    ...{ command: ["skaffold", "dev"], signal: "SIGINT" as const, isLate: true, recorded: 1 },
  })),
  {
    title: "an event log file by flag",
    command: ["skaffold", "build", "--event-log-file", "own.log", "--rpc-port", "PORT"],
    recorded: 1,
  },
  {
    title: "an event log file by variable",
    command: ["skaffold", "build", "--rpc-port=PORT"],
    env: { SKAFFOLD_EVENT_LOG_FILE: "own.log" },
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
    title: "two in a row that are both over at once",
    command: ["bash", "-c", inARow],
    env: { STAND_IN_SHORT: "1" },
    recorded: 2,
  },
  {
    title: "a version that knows no API by variables",
    command: ["skaffold", "build"],
    env: { STAND_IN_OLD: "1" },
    recorded: 0,
  },
  {
    title: "v2 that breaks",
    command: ["skaffold", "dev"],
    env: { STAND_IN_BREAK: "9" },
    signal: "SIGINT",
    recorded: 1,
  },
  { title: "a command without the API", command: ["skaffold", "render", "-o", "out.yaml"], recorded: 0 },
  { title: "one that dies of a signal", command: ["sh", "-c", "skaffold build; kill -KILL $$"], recorded: 1 },
  { title: "arguments behind --", command: ["skaffold", "exec", "task", "--", "--rpc-port=1"], recorded: 1 },
];

/** A user's folder, with a spill and a record of what Skaffold has said. */
function harness(env: Case["env"] = {}) {
  const cwd = mkdtempSync(join(root, "desk-"));
  writeFileSync(join(cwd, "skaffold.yaml"), `metadata:\n  name: ${cwd.split("-").at(-1)?.toLowerCase()}\n`);
  const inherited = Object.entries(process.env).filter(([name]) => !/^(TAPEDECK_|SKAFFOLD_|STAND_IN_)/.test(name));
  const own = {
    STAND_IN_NOW: "1",
    STAND_IN_RECORDING: build,
    STAND_IN_STDERR: "building\n",
    STAND_IN_SAID: join(cwd, "said"),
  };
  const ours = { TAPEDECK_SPILL: join(cwd, "spill"), TAPEDECK_URL: recorder.url, TAPEDECK_DEVELOPER: "alice" };
  return { cwd, env: { ...Object.fromEntries(inherited), PATH: path, ...own, ...ours, ...env } };
}

function start(command: readonly string[], { cwd, env }: ReturnType<typeof harness>): RunningCli {
  const [program = "", ...args] = command;
  return collect(spawn(program, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"], detached: true }));
}

/** All that a user can see of it. */
async function seen(
  command: readonly string[],
  at: ReturnType<typeof harness>,
  { signal, isLate = false, written }: Pick<Case, "signal" | "isLate" | "written">,
) {
  if (written !== undefined) {
    const { v1, v2 } = asNow(loadRecording(written)).messages;
    writeEventLog(join(at.cwd, "own.log"), { v1: v1.map(({ bytes }) => bytes), v2: v2.map(({ bytes }) => bytes) });
  }
  await using ran = start(command, at);
  if (signal !== undefined) {
    await until(() => ran.stdout().includes("args"), { message: "the command to run" });
    await until(() => ran.stderr().includes("building"), { message: "its signal handlers" });
    const pid = ran.child.pid ?? 0;
    if (isLate) process.kill(pid, "SIGSTOP");
    // The group of whoever has the terminal.
    process.kill(-pid, signal);
    if (isLate) await until(() => isAlone(pid), { message: "the command to end" });
    if (isLate) process.kill(pid, "SIGCONT");
  }
  const exit = await ran.ended;
  const stderr = ran.stderr().replace(/^tapedeck: .*\n/gm, "");
  const files = readdirSync(at.cwd).filter((name) => !["said", "spill"].includes(name));
  const own = ["own.log", "own.log.v2"].map((name) =>
    existsSync(join(at.cwd, name)) ? readFileSync(join(at.cwd, name), "utf8").split("\n").length : 0,
  );
  return { exit, stdout: ran.stdout(), stderr, files, own };
}

test.each(cases)("is the same with and without recording: $title", async ({ env, recorded, ...told }) => {
  // Without a port nothing is written to a file, whoever asks for it.
  const port = String(await ownPort());
  const command = told.command.map((arg) => arg.replace("PORT", port));
  const [without, with_] = [harness(env), harness(env)];
  const plain = await seen(command, without, { ...told, isLate: false });
  const project = `same-${recorder.items.length}`;
  const before = recorder.items.length;
  const recording = [process.execPath, main, "run", "--project", project, "--", ...command];
  expect(await seen(recording, with_, told)).toEqual(plain);

  const items = recorder.items.slice(before);
  const said = existsSync(join(with_.cwd, "said"))
    ? readFileSync(join(with_.cwd, "said"), "utf8").trim().split("\n")
    : [];
  const ends = items.filter(({ what }) => what?.$case === "closed" && what.value.process_ended);
  expect(ends).toHaveLength(recorded);
  // All of it, nothing twice; each channel in its order.
  for (const channel of ["v1", "v2"]) {
    const lines = said.filter((line) => line.startsWith(`${channel} `));
    expect(framesOf(items, channel)).toEqual(recorded === 0 ? [] : lines);
  }
  expect(existsSync(with_.env.TAPEDECK_SPILL) ? readdirSync(with_.env.TAPEDECK_SPILL) : []).toEqual([]);
});

test("the terminal is the command's", async ({ skip }) => {
  if (spawnSync("script", ["--version"]).status !== 0) skip("there is no program `script` here");
  const onTerminal = async (command: string) => {
    const { cwd, env } = harness({ STAND_IN_EXIT: "5" });
    await using ran = collect(
      spawn("script", ["-qec", command, "/dev/null"], { cwd, env, stdio: ["pipe", "pipe", "pipe"] }),
    );
    return [await ran.ended, ran.stdout().replace(/^tapedeck: .*\n/gm, "")];
  };
  const plain = await onTerminal("skaffold build");
  expect(plain[1]).toContain('"tty":true');
  expect(await onTerminal(`"${process.execPath}" "${main}" run -- skaffold build`)).toEqual(plain);
});

/** All children of a process have ended; while it sleeps they stay as zombies. */
function isAlone(pid: number): boolean {
  const { stdout } = spawnSync("ps", ["-A", "-o", "ppid=,stat="], { encoding: "utf8" });
  const children = stdout.split("\n").filter((line) => line.trim().startsWith(`${pid} `));
  return children.every((line) => line.trim().split(/\s+/)[1]?.startsWith("Z"));
}

function framesOf(items: readonly Item[], channel: string): string[] {
  return items.flatMap(({ what }) =>
    what?.$case === "frame" && what.value.channel === channel
      ? [`${channel} ${what.value.bytes.toString("base64")}`]
      : [],
  );
}
