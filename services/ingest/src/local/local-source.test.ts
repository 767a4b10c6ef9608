import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { until } from "@tapedeck/shared/testing/until";
import { expect, test } from "vitest";
import type { Store } from "../record/recorder-options.ts";
import { skaffoldSource, testLogger } from "../testing/ingest-harness.ts";
import { type LocalSourceOptions, startLocalSource } from "./local-source.ts";

/** A log that was there a moment ago. */
const failing = {
  leases: { take: () => Promise.reject(new Error("timeout")), freed: async () => {} },
} as unknown as Store;

async function startSource(address: string, folder: string, standby: boolean) {
  const config: LocalSourceOptions["config"] = {
    ...{ developer: "alice", project: "shop", upstream: "skaffold", address, standby },
    ...{ labels: {}, redact: "on", logs: "on" },
  };
  return startLocalSource({
    ...{ source: skaffoldSource("alice"), config, workspace: "default", upstream: "skaffold", logger: testLogger },
    spill: { dir: folder, memoryBytes: 1_000_000, diskBytes: 1_000_000 },
    store: async () => failing,
    recorder: { push: () => expect.fail("nobody has a lease") },
  });
}

test("a log that goes away before it has shown whose the source is keeps nobody from dialling, but a standby", async () => {
  await using fake = await startFakeSkaffold({
    recording: loadRecording(`${recordings.skaffold}/01-dev-success-3-artifacts-5-iterations`),
  });
  await using first = await temporaryFolder();
  await using second = await temporaryFolder();
  await using source = await startSource(fake.address, first.folder, false);
  await using standby = await startSource(fake.address, second.folder, true);
  await until(() => fake.health.v1.opened === 1, { message: "Skaffold to be dialled" });
  await until(() => source.state() === "tapping" && standby.state() === "standby", {
    message: "one to tap and the other to stand by",
  });
});
