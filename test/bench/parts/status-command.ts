import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { until } from "@tapedeck/shared/testing/until";
import type { Bench } from "../frame/bench.ts";
import { type Sample, sampled } from "../frame/sample.ts";
import type { Stack } from "../frame/stack.ts";

const cli = fileURLToPath(new URL("../../../packages/cli/bin/tapedeck.mjs", import.meta.url));
const run = promisify(execFile);

/** Measures how long a person waits for a command: the start of a process, and its questions to the gateway. */
export async function statusCommand(bench: Bench, stack: Stack): Promise<void> {
  // Nothing that the user of this machine has configured.
  const home = await bench.newFolder("home");
  const node = async (args: readonly string[]): Promise<string> => {
    const { stdout } = await run(process.execPath, args, { cwd: home, env: { PATH: process.env.PATH, HOME: home } });
    return stdout;
  };
  const timed = (args: readonly string[], expected: string): Promise<Sample> =>
    sampled(stack.processes, async () => {
      const said = await node(args);
      if (!said.includes(expected)) throw new Error(`instead of ${expected} it said: ${said}`);
      return { count: 1 };
    });
  const status = [cli, "status", "--url", `http://${stack.http}`];
  // Query answers before its tables are there.
  await until(async () => (await node(status)).includes("SOURCE"), { message: "the tables" });
  await bench.compare({
    figures: [
      {
        name: "`tapedeck status`",
        unit: "ms",
        calibration: "a Node process that prints a word",
        of: ({ wallMs }) => wallMs,
        targets: [{ of: "value", atMost: 150 }],
      },
    ],
    run: () => timed(status, "SOURCE"),
    calibrate: () => timed(["--eval", "console.log('ready')"], "ready"),
  });
}
