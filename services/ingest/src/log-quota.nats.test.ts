import { jetstreamManager } from "@nats-io/jetstream";
import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import type { NewEvent } from "@tapedeck/shared/log/log";
import { streamOf } from "@tapedeck/shared/log/subjects";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { sourceName } from "@tapedeck/shared/source";
import { incompressible, newEvent } from "@tapedeck/shared/testing/log-messages";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { readConfig } from "./config.ts";
import { startIngest } from "./ingest.ts";
import { openStores } from "./store.ts";
import { expectRecorded, openLogReader } from "./testing/ingest-harness.ts";

it("a log that is full by its settings is said to be, and goes on with all that waited once it may grow", async () => {
  const recording = loadRecording(`${recordings.skaffold}/01-dev-success-3-artifacts-5-iterations`);
  await using nats = await startTestNats();
  await using fake = await startFakeSkaffold({ recording });
  await using folder = await temporaryFolder();
  const env = {
    TAPEDECK_NATS_URL: nats.url,
    TAPEDECK_WORKSPACE: "acme",
    TAPEDECK_INGEST_GRPC_PORT: "0",
    TAPEDECK_INGEST_HEALTH_PORT: "0",
    TAPEDECK_INGEST_SPILL_DIR: folder.folder,
    TAPEDECK_SOURCES: JSON.stringify([{ developer: "alice", project: "shop", address: fake.address, redact: "off" }]),
  };
  const start = (maxBytes: number) => {
    const config = readConfig({ env });
    const logs = [{ workspaces: ["ac*"], maxBytes }];
    return startIngest({ ...config, nats: { ...config.nats, logs } }, silentLogger);
  };
  {
    await using ingest = await start(20_000);
    const ask = async (path: string) => (await fetch(`http://${ingest.addresses.health}/${path}`)).text();
    await fake.play();
    const said = /the workspace \\"acme\\": nothing is recorded, because its log has \d+ of at most 20000 bytes/;
    await until(async () => said.test(await ask("readyz")), { message: "it to be said" });
    // The disk has room, and the other workspaces go on.
    expect(JSON.parse(await ask("readyz"))).toMatchObject({ ready: true });
    const metrics = await ask("metrics");
    expect(metrics).toMatch(/^tapedeck_ingest_logs_at_quota\S* 1$/m);
    expect(metrics).toMatch(/^tapedeck_ingest_log_full\S* 0$/m);
  }
  await using _ingest = await start(1_000_000_000);
  await using logReader = await openLogReader(nats.url, "acme");
  const source = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });
  await expectRecorded(logReader, source, recording);
});

it("a full log takes the marks of erasures, other logs take everything, and it has room when something is removed", async () => {
  await using nats = await startTestNats();
  const settings = { url: nats.url, logs: [{ workspaces: ["acme"], maxBytes: 50_000 }] };
  await using stores = await openStores(settings, "test", silentLogger, new AbortController().signal);
  if (stores === undefined) throw new Error("no stores");
  const publishTo = async (workspace: string, events: readonly NewEvent[]) => {
    const source = sourceName({ workspace, developer: "alice", project: "shop", upstream: "skaffold" });
    const { writer } = (await stores.of(workspace)).log;
    return writer.publish(source, "W", events, (await writer.lastOf(source))?.seq ?? 0);
  };
  const frame = (workspace: string) => {
    const source = sourceName({ workspace, developer: "alice", project: "shop", upstream: "skaffold" });
    return newEvent(source, 1, incompressible(10_000));
  };
  const mark = (bytes: number): NewEvent => {
    const source = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });
    return newEvent(source, 1, { channel: "tapedeck", kind: "session.erased", ...incompressible(bytes) });
  };
  const outcomeOf = async (workspace: string, event: NewEvent) => (await publishTo(workspace, [event])).outcome;
  await until(async () => (await outcomeOf("acme", frame("acme"))) === "refused", { message: "the log to be full" });
  expect((await stores.of("acme")).whyFull()).toMatch(/^the workspace "acme": nothing is recorded/);
  expect(await outcomeOf("globex", frame("globex"))).toBe("acknowledged");
  expect((await stores.of("globex")).whyFull()).toBeUndefined();
  expect(await outcomeOf("acme", mark(100))).toBe("acknowledged");
  expect(await outcomeOf("acme", mark(10_000))).toBe("refused");
  await (await jetstreamManager(stores.nats)).streams.purge(streamOf("acme"));
  await until(async () => (await outcomeOf("acme", frame("acme"))) === "acknowledged", { message: "it to have room" });
});
