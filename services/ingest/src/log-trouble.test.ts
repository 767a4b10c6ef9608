import { jetstreamManager } from "@nats-io/jetstream";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { expect, test, vi } from "vitest";
import { readConfig } from "./config.ts";
import { startIngest } from "./ingest.ts";
import { logTrouble } from "./log-trouble.ts";
import { fixtures, openLogBook, skaffoldSource, temporaryFolder } from "./testing/ingest-desk.ts";
import { startFakeSkaffold } from "./upstreams/skaffold/fake.ts";
import { loadRecording } from "./upstreams/skaffold/recording.ts";

const deleted = "the log was deleted: start Tapedeck again to begin a new one";

test("a log that is deleted is an error in ingest's log, told once, and ingest is not ready", async () => {
  const recording = loadRecording(`${fixtures}/01-dev-success-3-artifacts-5-iterations`);
  await using nats = await startTestNats();
  await using fake = await startFakeSkaffold({ recording });
  await using folder = await temporaryFolder();
  const logger = silentLogger.child({});
  const error = vi.spyOn(logger, "error");
  const env = {
    TAPEDECK_NATS_URL: nats.url,
    TAPEDECK_INGEST_GRPC_PORT: "0",
    TAPEDECK_INGEST_HEALTH_PORT: "0",
    TAPEDECK_INGEST_SPILL_DIR: folder.folder,
    TAPEDECK_SOURCES: JSON.stringify([{ developer: "alice", project: "shop", address: fake.address }]),
  };
  await using ingest = await startIngest(readConfig({ env }), logger);
  await using book = await openLogBook(nats.url);
  const ready = async () => {
    const answer = await fetch(`http://${ingest.addresses.health}/readyz`);
    return [answer.status, await answer.json()];
  };
  await fake.playUntil({ v1: 5 });
  await until(async () => (await book.events(skaffoldSource("alice"))).length > 5, { message: "events" });
  expect(await ready()).toEqual([200, { ready: true, checks: { log: "ok" } }]);

  await (await jetstreamManager(book.nats)).streams.delete("TAPEDECK");
  await fake.playUntil({ v1: 10 });
  await until(() => error.mock.calls.length > 0, { message: "the error to be told" });
  expect(error.mock.calls).toEqual([
    [{ err: expect.objectContaining({ message: deleted }) }, expect.stringContaining("nothing gets into the log")],
  ]);
  expect(await ready()).toEqual([503, { ready: false, checks: { log: deleted } }]);
});

test("what the log refuses is told once, and again when it had been well in between", async () => {
  const logger = silentLogger.child({});
  const error = vi.spyOn(logger, "error");
  const bounds = vi.fn(async () => ({ firstSeq: 1, lastSeq: 1 }));
  const trouble = logTrouble(bounds, logger);
  const full = { outcome: "refused", cause: new Error("the log refused: insufficient storage") } as const;
  const met = async (published: Parameters<typeof trouble.met>[0]) => {
    const asked = bounds.mock.calls.length;
    trouble.met(published);
    await new Promise(setImmediate);
    return bounds.mock.calls.length - asked;
  };
  expect(await met(full)).toBe(1);
  await met(full);
  expect(error).toHaveBeenCalledTimes(1);
  trouble.over();
  await met(full);
  expect(error).toHaveBeenCalledTimes(2);
  // An answer that was lost on the way, from a log that is well.
  await met({ outcome: "unknown", cause: new Error("timeout") });
  expect(await met({ outcome: "wrong-sequence" })).toBe(0);
  expect(error).toHaveBeenCalledTimes(2);
});
