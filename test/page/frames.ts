import type { Page } from "playwright-core";

export type Frames = {
  readonly frames: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly longestMs: number;
  /** The number of script runs of over 50 ms. */
  readonly longTasks: number;
};

// Evaluated as text: this program has no browser types.
const watch = `(() => {
  const seen = { times: [], longTasks: 0, isOver: false };
  globalThis.frameTimes = seen;
  new PerformanceObserver((list) => { seen.longTasks += list.getEntries().length; }).observe({ type: "longtask" });
  let last = performance.now();
  const next = (now) => {
    seen.times.push(now - last);
    last = now;
    if (!seen.isOver) requestAnimationFrame(next);
  };
  requestAnimationFrame((now) => { last = now; requestAnimationFrame(next); });
})()`;

/** Measures the page's frame times while `what` runs. */
export async function framesDuring(page: Page, what: () => Promise<void>): Promise<Frames> {
  await page.evaluate(watch);
  await what();
  const seen = (await page.evaluate("(frameTimes.isOver = true, frameTimes)")) as {
    times: number[];
    longTasks: number;
  };
  const times = seen.times.toSorted((a, b) => a - b);
  const part = (share: number) =>
    Math.round((times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0) * 10) / 10;
  return { frames: times.length, p50Ms: part(0.5), p99Ms: part(0.99), longestMs: part(1), longTasks: seen.longTasks };
}
