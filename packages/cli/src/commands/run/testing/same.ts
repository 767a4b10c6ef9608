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
import { afterAll, beforeAll, expect, it } from "vitest";
import { collect, type RunningCli } from "../../../testing/cli.ts";
import { installNoticeProgram, type ShownNotice } from "../../../testing/notice-program.ts";
import { startRecorder, type TestRecorder } from "../../../testing/recorder.ts";
import { installSkaffold, recordingFolder } from "../../../testing/skaffold-program.ts";

export const build = recordingFolder("12-skaffold-build-one-shot");
export const run = recordingFolder("12b-skaffold-run-one-shot");
export const main = fileURLToPath(new URL("../../../main.ts", import.meta.url));

/** Two commands, whose recordings are `build` and `run`. */
export const inARow = `skaffold build && STAND_IN_RECORDING=${run} skaffold run --tail=false; echo "ended with $?"`;

export type Case = {
  readonly title: string;
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Sent to the command's whole group, as Ctrl-C is, when it runs. */
  readonly signal?: NodeJS.Signals;
  /** `tapedeck run` sleeps until the signal has ended the command, as on a busy machine. */
  readonly isLate?: boolean;
  /** The recording of a process that wrote to own.log right before the command. */
  readonly written?: string;
  /** Notices are on, and the program that shows them never ends. */
  readonly notices?: boolean;
  /** How many Skaffold processes are recorded whole. */
  readonly recorded: number;
};

/** Users' folders, and the recorder that they all have, for the tests of one file. */
export class Harnesses {
  readonly #root = mkdtempSync(join(tmpdir(), "tapedeck-same-"));
  readonly #path = installSkaffold(join(this.#root, "bin"));
  readonly #notices = installNoticeProgram(join(this.#root, "desktop"), "notify-send", { hangs: true });
  #recorder: TestRecorder | undefined;

  constructor() {
    beforeAll(async () => {
      this.#recorder = await startRecorder();
    });
    afterAll(async () => {
      await this.#recorder?.[Symbol.asyncDispose]();
      rmSync(this.#root, { recursive: true, force: true });
    });
  }

  get items(): readonly Item[] {
    return this.#recorder?.items ?? [];
  }

  get notices(): readonly ShownNotice[] {
    return this.#notices.shown();
  }

  /** A user's folder, with a spill and a record of what Skaffold has said. */
  harness(env: Case["env"] = {}, { hasNotices = false } = {}) {
    const cwd = mkdtempSync(join(this.#root, "desk-"));
    writeFileSync(join(cwd, "skaffold.yaml"), `metadata:\n  name: ${cwd.split("-").at(-1)?.toLowerCase()}\n`);
    const inherited = Object.entries(process.env).filter(([name]) => !/^(TAPEDECK_|SKAFFOLD_|STAND_IN_)/.test(name));
    const own = {
      STAND_IN_NOW: "1",
      STAND_IN_RECORDING: build,
      STAND_IN_STDERR: "building\n",
      STAND_IN_SAID: join(cwd, "said"),
    };
    const ours = { TAPEDECK_SPILL: join(cwd, "spill"), TAPEDECK_URL: this.#recorder?.url, TAPEDECK_DEVELOPER: "alice" };
    const PATH = hasNotices ? `${join(this.#root, "desktop")}:${this.#path}` : this.#path;
    const notify = hasNotices ? { TAPEDECK_NOTIFY: "1" } : {};
    return { cwd, env: { ...Object.fromEntries(inherited), PATH, ...own, ...ours, ...notify, ...env } };
  }
}

type Harness = ReturnType<Harnesses["harness"]>;

function start(command: readonly string[], { cwd, env }: Harness): RunningCli {
  const [program = "", ...args] = command;
  return collect(spawn(program, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"], detached: true }));
}

/** All that a user can see of it. */
async function seen(
  command: readonly string[],
  at: Harness,
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
    // The process group that has the terminal.
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

/** Tests that a user can see no difference, and that everything is recorded. */
export function testSame(harnesses: Harnesses, cases: readonly Case[]): void {
  it.each(cases)(
    "is the same with and without recording: $title",
    async ({ env, recorded, notices: hasNotices = false, ...reported }) => {
      // Without a port nothing is written to a file.
      const port = String(await ownPort());
      const command = reported.command.map((arg) => arg.replace("PORT", port));
      const [without, with_] = [harnesses.harness(env), harnesses.harness(env, { hasNotices })];
      const plain = await seen(command, without, { ...reported, isLate: false });
      const project = `same-${harnesses.items.length}`;
      const before = harnesses.items.length;
      const shownBefore = harnesses.notices.length;
      const recording = [process.execPath, main, "run", "--project", project, "--", ...command];
      expect(await seen(recording, with_, reported)).toEqual(plain);

      const items = harnesses.items.slice(before);
      const said = existsSync(join(with_.cwd, "said"))
        ? readFileSync(join(with_.cwd, "said"), "utf8").trim().split("\n")
        : [];
      const received = new Set(items.flatMap(({ connection, what }) => (what?.$case === "frame" ? [connection] : [])));
      const ends = items.filter(({ what }) => what?.$case === "closed" && what.value.process_ended);
      expect(ends.filter(({ connection }) => received.has(connection))).toHaveLength(recorded);
      // All of it, nothing twice; each channel in its order.
      for (const channel of ["v1", "v2"]) {
        const lines = said.filter((line) => line.startsWith(`${channel} `));
        expect(framesOf(items, channel)).toEqual(recorded === 0 ? [] : lines);
      }
      const { exit } = plain;
      expect(harnesses.notices.slice(shownBefore)).toEqual(
        hasNotices && exit !== 0 ? [expect.arrayContaining([`${command.join(" ")}: exit code ${exit}`])] : [],
      );
      expect(existsSync(with_.env.TAPEDECK_SPILL) ? readdirSync(with_.env.TAPEDECK_SPILL) : []).toEqual([]);
    },
  );
}

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
