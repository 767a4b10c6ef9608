import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { until } from "@tapedeck/shared/testing/until";
import { expect } from "vitest";
import { readConfig } from "../config.ts";
import { startIngest } from "../ingest.ts";
import { expectRecorded, openLogReader, skaffoldSource } from "./ingest-harness.ts";

/** A log without room is reported within that time, and with room recording goes on by itself with all that waited. */
export async function recordsThroughFullDisk(soonMs: number): Promise<void> {
  const recording = loadRecording(`${recordings.skaffold}/01-dev-success-3-artifacts-5-iterations`);
  // The recording takes more in the log, compressed.
  await using nats = await startTestNats({ maxFileStore: "25KB" });
  await using fake = await startFakeSkaffold({ recording });
  await using folder = await temporaryFolder();
  const env = {
    TAPEDECK_NATS_URL: nats.url,
    TAPEDECK_INGEST_GRPC_PORT: "0",
    TAPEDECK_INGEST_HEALTH_PORT: "0",
    TAPEDECK_INGEST_SPILL_DIR: folder.folder,
    TAPEDECK_SOURCES: JSON.stringify([{ developer: "alice", project: "shop", address: fake.address, redact: "off" }]),
  };
  await using ingest = await startIngest(readConfig({ env }), silentLogger);
  const ask = async (path: string) => {
    const answer = await fetch(`http://${ingest.addresses.health}/${path}`);
    return { status: answer.status, body: await answer.text() };
  };
  await fake.play();
  const said = { ready: false, checks: { log: "nothing is recorded: the log's disk is full" } };
  await until(
    async () => {
      const { status, body } = await ask("readyz");
      expect([status, JSON.parse(body)]).toEqual([503, said]);
      return true;
    },
    { message: "it to be said", deadlineMs: soonMs },
  );
  expect((await ask("metrics")).body).toMatch(/^tapedeck_ingest_log_full\S* 1$/m);

  await nats.restart({ maxFileStore: "1GB" });
  await using logReader = await openLogReader(nats.url);
  const source = skaffoldSource("alice");
  await expectRecorded(logReader, source, recording);
  await until(async () => (await ask("readyz")).status === 200, { message: "all to be well" });
  await until(async () => /^tapedeck_ingest_log_full\S* 0$/m.test((await ask("metrics")).body), {
    message: "the metric to say so",
  });
}
