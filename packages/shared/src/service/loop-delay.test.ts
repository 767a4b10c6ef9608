import { Registry } from "@prometheus-io/client";
import { expect, it } from "vitest";
import { until } from "../testing/until.ts";
import { RecentDelays, reportLoopDelay } from "./loop-delay.ts";

it("gives everyone who reads the longest turn", async () => {
  const registry = new Registry();
  reportLoopDelay(registry);
  const read = async (name: string) => {
    const found = new RegExp(`^nodejs_eventloop_lag_${name}_seconds (\\S+)$`, "m").exec(await registry.metrics());
    return Number(found?.[1]);
  };
  holdLoop(300);
  await until(async () => (await read("max")) > 0.29, { message: "the hold to be reported" });
  expect(await read("max")).toBeGreaterThan(0.29);
  expect(await read("mean")).toBeLessThan(await read("max"));
  expect(await read("min")).toBeLessThan(await read("mean"));
});

it("forgets a turn after two windows", async () => {
  using delays = new RecentDelays(200);
  holdLoop(300);
  await until(() => delays.recorded.max > 290_000_000, { message: "the hold to be reported" });
  await until(() => delays.recorded.count > 0 && delays.recorded.max < 290_000_000, { message: "a span without it" });
});

function holdLoop(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}
