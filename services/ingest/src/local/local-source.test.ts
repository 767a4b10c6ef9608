import { once } from "node:events";
import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import type { Leases } from "../record/journal/lease.ts";
import { sourceTaken } from "../record/push-errors.ts";
import { skaffoldSource, testLogger } from "../testing/ingest-harness.ts";
import { type LocalSourceOptions, startLocalSource } from "./local-source.ts";

/** A log that was there a moment ago. */
const failing = {
  take: () => Promise.reject(new Error("timeout")),
  freed: async () => {},
} as unknown as Leases;

/** A log that says that the source is ours. */
const ours = {
  take: async () => ({ lost: new AbortController().signal, [Symbol.asyncDispose]: async () => {} }),
  freed: async () => {},
} as unknown as Leases;

type SourceFixture = Pick<LocalSourceOptions, "recorder"> & { readonly leases: Leases; readonly standby: boolean };

async function startSource(address: string, folder: string, { standby, leases, recorder }: SourceFixture) {
  const config: LocalSourceOptions["config"] = {
    developer: "alice",
    project: "shop",
    upstream: "skaffold",
    address,
    standby,
    labels: {},
    redact: "on",
    logs: "on",
  };
  return startLocalSource({
    source: skaffoldSource("alice"),
    config,
    workspace: "default",
    upstream: "skaffold",
    logger: testLogger,
    spill: { dir: folder, memoryBytes: 1_000_000, diskBytes: 1_000_000 },
    leases: async () => leases,
    recorder,
  });
}

it("a log that goes away before it has shown whose the source is keeps nobody from dialling, but a standby", async () => {
  await using fake = await startFakeSkaffold({
    recording: loadRecording(`${recordings.skaffold}/01-dev-success-3-artifacts-5-iterations`),
  });
  await using first = await temporaryFolder();
  await using second = await temporaryFolder();
  const recorder = { push: () => expect.fail("nobody has a lease") };
  const given = { leases: failing, recorder };
  await using source = await startSource(fake.address, first.folder, { ...given, standby: false });
  await using standby = await startSource(fake.address, second.folder, { ...given, standby: true });
  await until(() => fake.health.v1.opened === 1, { message: "Skaffold to be dialled" });
  await until(() => source.state() === "tapping" && standby.state() === "standby", {
    message: "one to tap and the other to stand by",
  });
});

it("a source whose lease is lost while its recording begins is recorded when it has the lease again", async () => {
  await using fake = await startFakeSkaffold({
    recording: loadRecording(`${recordings.skaffold}/01-dev-success-3-artifacts-5-iterations`),
  });
  await using spill = await temporaryFolder();
  let pushes = 0;
  const recorder: LocalSourceOptions["recorder"] = {
    async *push(_requests, { signal }) {
      if (++pushes === 1) throw sourceTaken(skaffoldSource("alice"));
      yield { body: { $case: "welcome", value: { source: skaffoldSource("alice"), committed: 0n } } };
      await once(signal, "abort");
    },
  };
  await using _source = await startSource(fake.address, spill.folder, { standby: true, leases: ours, recorder });
  await until(() => pushes === 2, { message: "the source to be pushed again" });
});
