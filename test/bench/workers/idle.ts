import { monitorEventLoopDelay } from "node:perf_hooks";

/** A Node process without anything to do: what it shows, the machine and Node themselves cost. */

const histogram = monitorEventLoopDelay({ resolution: 5 });
histogram.enable();

/** As loop-report.mjs measures it in a service. */
export function loopHold(): number {
  const held = histogram.max / 1_000_000;
  histogram.reset();
  return held;
}
