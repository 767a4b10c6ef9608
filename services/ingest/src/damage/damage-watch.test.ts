import { silentLogger } from "@tapedeck/shared/service/logger";
import { expect, it, onTestFinished, vi } from "vitest";
import { DamageWatch } from "./damage-watch.ts";

const dayMs = 86_400_000;

it("a log that is checked every 30 days is checked every 30 days", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const over = new AbortController();
  const check = vi.fn(async () => ({ holes: [], places: [], reported: new Map(), messages: 0, lastSeq: 0 }));
  const recordFact = async () => {};
  const watch = new DamageWatch({
    check,
    epoch: "abc123",
    recordFact,
    everyMs: 30 * dayMs,
    logger: silentLogger,
    signal: over.signal,
  });
  await vi.advanceTimersByTimeAsync(29 * dayMs);
  expect(check).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(62 * dayMs);
  expect(check).toHaveBeenCalledTimes(4);
  over.abort();
  await watch[Symbol.asyncDispose]();
});
