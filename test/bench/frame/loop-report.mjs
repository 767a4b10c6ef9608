// Loaded into a service before its own code: answers "loop" with the longest time in ms between two turns of a timer of
// 5 ms since the last answer, and forgets it. A finer timer would cost a measurable part of an idle service's time.
import { monitorEventLoopDelay } from "node:perf_hooks";

const histogram = monitorEventLoopDelay({ resolution: 5 });
histogram.enable();
process.on("message", (message) => {
  if (message !== "loop") return;
  const held = histogram.max / 1_000_000;
  histogram.reset();
  process.send(held);
});
