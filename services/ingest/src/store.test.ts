import { startNatsServer } from "@tapedeck/infra/local/nats-server";
import { logStart } from "@tapedeck/shared/log/offset";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { until } from "@tapedeck/shared/testing/until";
import { expect, inject, it, vi } from "vitest";
import { readConfig } from "./config.ts";
import { openStores } from "./store.ts";
import { testLogger } from "./testing/ingest-harness.ts";

it("a log that knows nobody for a while is away, not gone", async () => {
  await using folder = await temporaryFolder();
  const start = (password: string, port: number) =>
    startNatsServer({ binary: inject("natsServer"), dataDir: folder.folder, port, user: "u", password });
  const first = await start("right", await ownPort());
  const settings = { url: first.url, user: "u", password: "right" };
  await using stores = await openStores(settings, "I", testLogger, new AbortController().signal);
  if (stores === undefined) throw new Error("no stores");
  const store = await stores.of("default");
  let refusals = 0;
  const watch = async () => {
    for await (const { type } of store.nats.status()) if (type === "disconnect" || type === "error") refusals++;
  };
  void watch();
  await first.stop();
  const stranger = await start("wrong", first.port);
  await until(() => refusals > 6 || store.nats.isClosed(), { message: "the connection to be refused again and again" });
  await stranger.stop();
  const again = await start("right", first.port);
  await until(async () => (await store.log.reader.bounds()).lastOffset === logStart, {
    message: "the log to be there again",
  });
  expect(store.nats.isClosed()).toBe(false);
  await again.stop();
});

it.each([
  ["known to sync", { TAPEDECK_NATS_SYNC_ALWAYS: "true" }, 0],
  ["not known to sync", {}, 1],
])("a nats-server that is %s", async (_, env, warnings) => {
  await using nats = await startTestNats();
  const settings = readConfig({ env: { ...env, TAPEDECK_NATS_URL: nats.url } }).nats;
  const logger = silentLogger.child({});
  const warn = vi.spyOn(logger, "warn");
  await using stores = await openStores(settings, "I", logger, new AbortController().signal);
  await stores?.of("default");
  expect(warn.mock.calls.filter((call) => JSON.stringify(call).includes("sync_interval"))).toHaveLength(warnings);
});
