import type { ConnectedLogs } from "@tapedeck/shared/log/connect-log";
import { expect, it, onTestFinished, vi } from "vitest";
import { logsOver } from "./workspace-logs.ts";

it.each([
  { cluster: undefined, questions: 1 },
  { cluster: "three", questions: 12 },
])("query asks $questions times a minute which workspaces have a log, with the cluster $cluster", async (servers) => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const names = vi.fn(async () => ["acme"]);
  const nats = {
    info: servers,
    isClosed: () => false,
    subscribe: () => ({ unsubscribe: () => {} }),
    status: async function* () {},
  };
  const connected = { nats, logs: { names }, workspaces: {} } as unknown as ConnectedLogs;
  const found = vi.fn();
  using _watch = logsOver(connected).watch(found);
  await vi.advanceTimersByTimeAsync(60_000);
  expect([names, found].map(({ mock }) => mock.calls.length)).toEqual([servers.questions, servers.questions]);
});
