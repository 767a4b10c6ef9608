import { setImmediate as nextTurn } from "node:timers/promises";
import { Registry } from "@tapedeck/shared/service/metrics";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import type { SinkFigures } from "./delivery/running-sink.ts";
import type { RunningSinks } from "./delivery/running-sinks.ts";
import { sinkMetrics } from "./sink-metrics.ts";

it("two pages that are made at the same time both have the lags of all sinks", async () => {
  const waiting: (() => void)[] = [];
  const figures = () =>
    new Promise<SinkFigures>((resolve) => waiting.push(() => resolve({ lagEvents: 7, lagSeconds: 7, parked: 7 })));
  const sinks = ["ci", "team"].map((sink) => ({ sink: { workspace: "acme", sink }, running: { figures } }));
  const registry = new Registry();
  sinkMetrics(registry, () => sinks as unknown as RunningSinks["all"]);
  // Each sink is asked for each of the three gauges.
  const begin = async () => {
    const page = registry.metrics();
    await until(() => waiting.length === 3 * sinks.length, { message: "the questions of a page" });
    return { page, answers: waiting.splice(0) };
  };
  const first = await begin();
  for (const answer of first.answers.filter((_, index) => index % 2 === 0)) answer();
  await nextTurn();
  const second = await begin();
  for (const { page, answers } of [first, second]) {
    for (const answer of answers) answer();
    expect((await page).match(/_sink_\w+\{.*sink="\w+".*\} 7/g)).toHaveLength(3 * sinks.length);
  }
});
