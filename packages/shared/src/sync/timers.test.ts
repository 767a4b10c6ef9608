import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { delay } from "./delay.ts";
import { startInterval, startTimer, stopTimer, timeoutSignal } from "./timers.ts";

const dayMs = 86_400_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it.each([1, 2 ** 31 - 1, 2 ** 31, 30 * dayMs, 365 * dayMs])("a timer of %d ms fires after that time", (ms) => {
  const run = vi.fn();
  startTimer(run, ms);
  vi.advanceTimersByTime(ms - 1);
  expect(run).toHaveBeenCalledTimes(0);
  vi.advanceTimersByTime(1);
  expect(run).toHaveBeenCalledTimes(1);
});

it("a delay of 30 days takes 30 days, and ends at once with its signal", async () => {
  const over = new AbortController();
  let passed = 0;
  for (const signal of [undefined, over.signal]) void delay(30 * dayMs, signal).then(() => passed++);
  await vi.advanceTimersByTimeAsync(29 * dayMs);
  expect(passed).toBe(0);
  over.abort();
  await vi.advanceTimersByTimeAsync(0);
  expect(passed).toBe(1);
  await vi.advanceTimersByTimeAsync(dayMs);
  expect(passed).toBe(2);
});

it("an interval of 30 days runs once in 30 days, and never again once it is stopped", () => {
  const run = vi.fn();
  const timer = startInterval(run, 30 * dayMs);
  vi.advanceTimersByTime(91 * dayMs);
  expect(run).toHaveBeenCalledTimes(3);
  stopTimer(timer);
  vi.advanceTimersByTime(300 * dayMs);
  expect(run).toHaveBeenCalledTimes(3);
});

it("a timer that never ends is stopped without having run", () => {
  const run = vi.fn();
  using timer = startTimer(run, Number.POSITIVE_INFINITY);
  vi.advanceTimersByTime(1_000 * dayMs);
  timer.refresh();
  expect(run).toHaveBeenCalledTimes(0);
});

it.each([1_000, 30 * dayMs])("a refreshed timer of %d ms begins anew, also when it has fired", (ms) => {
  const run = vi.fn();
  const timer = startTimer(run, ms);
  vi.advanceTimersByTime(ms - 1);
  timer.refresh();
  vi.advanceTimersByTime(ms - 1);
  expect(run).toHaveBeenCalledTimes(0);
  vi.advanceTimersByTime(1);
  expect(run).toHaveBeenCalledTimes(1);
  timer.refresh();
  vi.advanceTimersByTime(ms);
  expect(run).toHaveBeenCalledTimes(2);
  stopTimer(timer);
  timer.refresh();
  vi.advanceTimersByTime(ms);
  expect(run).toHaveBeenCalledTimes(2);
});

it("a signal of 30 days aborts after that time, as one of AbortSignal.timeout does", () => {
  const signal = timeoutSignal(30 * dayMs);
  vi.advanceTimersByTime(30 * dayMs - 1);
  expect(signal.aborted).toBe(false);
  vi.advanceTimersByTime(1);
  expect(signal.reason).toMatchObject({ name: "TimeoutError" });
});
