import { monitorEventLoopDelay } from "node:perf_hooks";

/** A Node process without anything to do: shows the cost of the machine and Node themselves. */

const histogram = monitorEventLoopDelay({ resolution: 5 });
histogram.enable();

/** Measures as loop-report.mjs does in a service. */
export function loopHold(): number {
  const held = histogram.max / 1_000_000;
  histogram.reset();
  return held;
}
