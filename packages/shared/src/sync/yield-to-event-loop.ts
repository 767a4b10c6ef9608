import { setImmediate } from "node:timers/promises";

/** How long work may keep the event loop to itself: whatever drains an upstream in this process must not wait. */
const sliceMs = 5;

/** To be awaited between pieces of long work: lets others have their turn when the slice is used up. */
export function yieldToEventLoop(): () => Promise<void> | undefined {
  let start = performance.now();
  return () => {
    if (performance.now() - start < sliceMs) return undefined;
    return setImmediate().then(() => {
      start = performance.now();
    });
  };
}
