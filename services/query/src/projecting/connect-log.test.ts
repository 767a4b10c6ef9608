import { silentLogger } from "@tapedeck/shared/service/logger";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { expect, test, vi } from "vitest";
import { connectLog } from "./connect-log.ts";

test.each([
  ["known to sync", true, 0],
  ["not known to sync, which is said once", false, 1],
])("a nats-server that is %s", async (_, syncAlways, warnings) => {
  await using nats = await startTestNats();
  const log = silentLogger.child({});
  const warn = vi.spyOn(log, "warn");
  const told = new Set<string>();
  for (let opened = 0; opened < 2; opened++) {
    await using _log = await connectLog({ url: nats.url, syncAlways }, log, told);
  }
  expect(warn.mock.calls.filter((call) => JSON.stringify(call).includes("sync_interval"))).toHaveLength(warnings);
});
