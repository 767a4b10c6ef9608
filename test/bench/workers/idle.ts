import { monitorEventLoopDelay } from "node:perf_hooks";

/** A Node process without anything to do: what it shows, the machine and Node themselves cost. */

const histogram = monitorEventLoopDelay({ resolution: 1 });
histogram.enable();

/** The longest hold of its event loop in ms since the last call. */
export function loopHold(): number {
  const held = Math.max(0, histogram.max / 1_000_000 - 1);
  histogram.reset();
  return held;
}
