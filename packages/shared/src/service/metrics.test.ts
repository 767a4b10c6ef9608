import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { createMetrics } from "./metrics.ts";

it("has the event loop's delay once, with the service's name", async () => {
  const text = await createMetrics("some").metrics();
  for (const name of ["min", "max", "mean", "stddev", "p50", "p90", "p99"]) {
    expect(
      text.match(new RegExp(`^nodejs_eventloop_lag_${name}_seconds\\{service="some"\\} \\d\\S*$`, "gm")),
    ).toHaveLength(1);
  }
});

it("leaves a process that does nothing asleep", async () => {
  const metrics = JSON.stringify(new URL("metrics.ts", import.meta.url));
  const program = `
    const { createMetrics } = await import(${metrics});
    createMetrics("some");
    const turns = () => performance.nodeTiming.uvMetricsInfo.loopCount;
    const before = turns();
    setTimeout(() => console.log(turns() - before), 1_000);`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program]);
  // A timer of 100 ms would make ten turns.
  expect(Number(stdout)).toBeLessThan(8);
});
