import { silentLogger } from "@tapedeck/shared/service/logger";
import { expect, it, onTestFinished, vi } from "vitest";
import { AssignedWorkspaces } from "./assigned-workspaces.ts";
import { type TakeOverOptions, TakeOvers } from "./take-overs.ts";

it.each([
  { patterns: [], checks: 0 },
  { patterns: ["acme"], checks: 12 },
])(
  "a query with the patterns $patterns checks its workspaces $checks times a minute, and at each change",
  async (by) => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const assigned = new AssignedWorkspaces({ name: "", patterns: by.patterns });
    const entries = vi.spyOn(assigned, "entries");
    const options = { assigned, names: async () => [], logger: silentLogger, leaveMs: 0 };
    const stop = new AbortController();
    const running = new TakeOvers(options as unknown as TakeOverOptions, { begin: () => {}, restart: () => {} }).run(
      stop.signal,
    );
    const checks = async (act: () => Promise<unknown>) => {
      entries.mockClear();
      await act();
      return entries.mock.calls.length;
    };
    await vi.advanceTimersByTimeAsync(0);
    expect(await checks(() => vi.advanceTimersByTimeAsync(60_000))).toBe(by.checks);
    assigned.found(new Map());
    expect(await checks(() => vi.advanceTimersByTimeAsync(0))).toBe(1);
    stop.abort();
    await running;
  },
);
