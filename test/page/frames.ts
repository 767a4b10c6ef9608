import type { CDPSession, Page } from "playwright-core";

export type Frames = {
  readonly frames: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly longestMs: number;
  /** The number of script runs of over 50 ms. */
  readonly longTasks: number;
  /** Processor time of the page's main thread per frame: unlike the others, it is the same on a busy machine. */
  readonly cpuMs: number;
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
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  await page.evaluate(watch);
  const before = await taskMs(session);
  await what();
  const spent = (await taskMs(session)) - before;
  await session.detach();
  const seen = (await page.evaluate("(frameTimes.isOver = true, frameTimes)")) as {
    times: number[];
    longTasks: number;
  };
  const times = seen.times.toSorted((a, b) => a - b);
  const part = (share: number) =>
    Math.round((times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0) * 10) / 10;
  const cpuMs = Math.round((spent / times.length) * 10) / 10;
  const durations = { p50Ms: part(0.5), p99Ms: part(0.99), longestMs: part(1) };
  return { frames: times.length, ...durations, longTasks: seen.longTasks, cpuMs };
}

async function taskMs(session: CDPSession): Promise<number> {
  const { metrics } = await session.send("Performance.getMetrics");
  return (metrics.find(({ name }) => name === "TaskDuration")?.value ?? 0) * 1_000;
}
