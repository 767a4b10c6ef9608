// Loaded into a service before its own code: answers "loop" with the longest time in ms that the event loop was held
// since the last answer, and forgets it.
import { monitorEventLoopDelay } from "node:perf_hooks";

const resolutionMs = 1;
const histogram = monitorEventLoopDelay({ resolution: resolutionMs });
histogram.enable();
process.on("message", (message) => {
  if (message !== "loop") return;
  // The timer itself is due every resolutionMs: only what is beyond is a hold.
  const held = Math.max(0, histogram.max / 1_000_000 - resolutionMs);
  histogram.reset();
  process.send(held);
});
