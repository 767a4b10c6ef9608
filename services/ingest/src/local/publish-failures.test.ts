import { jetstreamManager } from "@nats-io/jetstream";
import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { endOf, offsetOf } from "@tapedeck/shared/log/offset";
import { streamOf } from "@tapedeck/shared/log/subjects";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { connectThroughRestarts } from "@tapedeck/shared/testing/nats-connection";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it, onTestFinished, vi } from "vitest";
import { readConfig } from "../config.ts";
import { startIngest } from "../ingest.ts";
import { LogAtQuotaError } from "../record/log-quota.ts";
import { openLogReader, skaffoldSource } from "../testing/ingest-harness.ts";
import { PublishFailures } from "./publish-failures.ts";

const deleted =
  "the log was deleted: stop Tapedeck, and restore it with `tapedeck restore`, or start a new one with `tapedeck new-epoch`";

it("a log that is deleted is an error in ingest's log, reported once, and ingest is not ready", async () => {
  const recording = loadRecording(`${recordings.skaffold}/01-dev-success-3-artifacts-5-iterations`);
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
  await using logReader = await openLogReader(nats.url);
  const ready = async () => {
    const answer = await fetch(`http://${ingest.addresses.health}/readyz`);
    return [answer.status, await answer.json()];
  };
  const reports = (expected: readonly [number, object]) =>
    until(
      async () => {
        expect(await ready()).toEqual(expected);
        return true;
      },
      { message: `readiness ${expected[0]}` },
    );
  await fake.playUntil({ v1: 5 });
  await until(async () => (await logReader.events(skaffoldSource("alice"))).length > 5, { message: "events" });
  await reports([200, { ready: true, checks: { log: "ok" } }]);

  await (await jetstreamManager(logReader.nats)).streams.delete(streamOf("default"));
  await fake.playUntil({ v1: 10 });
  await until(() => error.mock.calls.length > 0, { message: "the error to be reported" });
  expect(error.mock.calls).toEqual([
    [{ err: expect.objectContaining({ message: deleted }) }, expect.stringContaining("the log accepts nothing now")],
  ]);
  await reports([503, { ready: false, checks: { log: deleted } }]);
});

it("a refusal of the log is reported once, and again when it had been well in between", async () => {
  const logger = silentLogger.child({});
  const error = vi.spyOn(logger, "error");
  const reach = vi.fn(async () => ({ firstOffset: offsetOf(1), lastOffset: endOf(1), messages: 1, bytes: 0 }));
  using failures = new PublishFailures({ reach, logger });
  const full = { outcome: "refused", cause: new Error("the log refused: insufficient storage") } as const;
  const met = async (published: Parameters<typeof failures.met>[0]) => {
    const before = reach.mock.calls.length;
    failures.met(published);
    await new Promise(setImmediate);
    return reach.mock.calls.length - before;
  };
  expect(await met(full)).toBe(1);
  await met(full);
  expect(error).toHaveBeenCalledTimes(1);
  failures.over();
  await met(full);
  expect(error).toHaveBeenCalledTimes(2);
  // An answer that was lost on the way, from a log that is well.
  await met({ outcome: "unknown", cause: new Error("timeout") });
  expect(await met({ outcome: "wrong-sequence" })).toBe(0);
  expect(error).toHaveBeenCalledTimes(2);
});

const reach = async () => ({ firstOffset: offsetOf(1), lastOffset: endOf(1), messages: 1, bytes: 0 });
const unanswered = { outcome: "unknown", cause: new Error("timeout") } as const;

/** A disk without room, as it was when a publish was not answered; nobody publishes any more. */
async function fullDisk(quietMs: number) {
  const disk = { free: 0, observations: 0 };
  const freeBytes = async () => {
    disk.observations++;
    return disk.free;
  };
  const failures = new PublishFailures({ reach, logger: silentLogger, freeBytes, quietMs });
  failures.met(unanswered);
  await until(() => failures.isFull, { message: "the disk to be full" });
  return Object.assign(failures, { disk });
}

it("a log that can be read and answers no publish is reported at the second one, until it takes something", async () => {
  using failures = new PublishFailures({ reach, logger: silentLogger });
  const now = vi.spyOn(performance, "now");
  onTestFinished(() => now.mockRestore());
  const met = async (ms: number) => {
    now.mockReturnValue(ms);
    failures.met(unanswered);
    await new Promise(setImmediate);
    return failures.reason;
  };
  expect(await met(2_000)).toBeUndefined();
  expect(await met(2_500)).toBeUndefined();
  // A publish is given up after 2 s.
  expect(await met(4_100)).toContain("the log can be read but accepts nothing");
  expect(failures.isFull).toBe(false);
  failures.over();
  expect(failures.reason).toBeUndefined();
  expect(await met(10_000)).toBeUndefined();
});

it("a log of one workspace that is full by its settings is no failure of the log's server", async () => {
  const logger = silentLogger.child({});
  const error = vi.spyOn(logger, "error");
  using failures = new PublishFailures({ reach: async () => {}, logger });
  failures.met({ outcome: "refused", cause: new LogAtQuotaError("full by its settings") });
  failures.met({ outcome: "refused", cause: new Error("of the server") });
  await until(() => error.mock.calls.length > 0, { message: "the other failure to be reported" });
  expect(error.mock.calls.map(([fields]) => fields)).toEqual([{ err: new Error("of the server") }]);
});

it("a full disk is over when there is room, though nobody has anything to record any more", async () => {
  using failures = await fullDisk(20);
  const { disk } = failures;
  const before = disk.observations;
  await until(() => disk.observations > before + 20, { message: "some looks" });
  expect(failures.reason).toContain("the log's disk is full");
  disk.free = 1e9;
  await until(() => !failures.isFull, { message: "it to be over" });
  expect(failures.reason).toBeUndefined();
  // The server takes nothing before it is started again, and that is still for the disk that was full.
  failures.met(unanswered);
  // It lasts for 20 ms, which `until` may miss.
  await new Promise(setImmediate);
  expect(failures.isFull).toBe(true);
  failures.over();
  failures.met(unanswered);
  await new Promise(setImmediate);
  expect(failures.isFull).toBe(false);
});

it("a disk is checked while it is full, and neither before nor after", async () => {
  const timers = vi.spyOn(globalThis, "setTimeout");
  onTestFinished(() => timers.mockRestore());
  // Each has a timer of its own length.
  const timersOf = (quietMs: number) => timers.mock.calls.filter(([, ms]) => ms === quietMs / 4).length;
  using _well = new PublishFailures({ reach, logger: silentLogger, quietMs: 28 });
  using over = await fullDisk(24);
  over.over();
  const before = timersOf(24);
  using full = await fullDisk(20);
  await until(() => full.disk.observations > 20, { message: "many checks of a full disk" });
  expect([timersOf(28), timersOf(24) - before]).toEqual([0, 0]);
});

it("a full disk is over for a server that was started since", async () => {
  await using nats = await startTestNats();
  await using stack = new AsyncDisposableStack();
  const nc = stack.adopt(await connectThroughRestarts(nats.url), (connection) => connection.close());
  using failures = await fullDisk(3_600_000);
  void failures.watchServer(nc);
  // The connection alone shows nothing of the server.
  const statuses = nc.status()[Symbol.asyncIterator]();
  await nc.reconnect();
  for (let type = ""; type !== "reconnect"; ) type = (await statuses.next()).value?.type ?? "reconnect";
  await new Promise(setImmediate);
  expect(failures.isFull).toBe(true);
  await nats.restart();
  await until(() => !failures.isFull, { message: "it to be over" });
});
