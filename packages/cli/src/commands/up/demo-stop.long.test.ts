import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { startDemo } from "./demo.ts";

/** The demo's programs that this process has started. */
async function programs(): Promise<readonly number[]> {
  const { stdout } = await promisify(execFile)("ps", ["-o", "pid=,args=", "--ppid", String(process.pid)]);
  return stdout.split("\n").flatMap((line) => (line.includes("/fakes/") ? [Number.parseInt(line, 10)] : []));
}

it("a demo that is stopped while one of its tools starts again leaves no process", async () => {
  const demo = await startDemo();
  const [first = 0, ...others] = await programs();
  process.kill(first, "SIGKILL");
  const isStarting = async () => (await programs()).some((pid) => pid !== first && !others.includes(pid));
  await until(isStarting, { message: "the tool to start again" });
  await demo[Symbol.asyncDispose]();
  expect(await programs()).toEqual([]);
});
