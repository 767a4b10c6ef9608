import { join } from "node:path";
import { loadRecording as loadHost } from "@tapedeck/fakes/rkt/recording";
import { loadRecording as loadSkaffold } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { loadRecording as loadVagrant } from "@tapedeck/fakes/vagrant/recording";
import { startFakeVagrant } from "@tapedeck/fakes/vagrant/server";
import { migrated } from "@tapedeck/query/testing/migrated";
import { dumpTables } from "@tapedeck/query/testing/release-tables";
import { logFormat } from "@tapedeck/shared/log/epoch";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { until } from "@tapedeck/shared/testing/until";
import { version } from "@tapedeck/shared/version";
import { expect, it } from "vitest";
import { kinds, settled, startRktHost } from "../rkt/host.ts";
import { startStack } from "../stack/stack.ts";
import { startConfiguredNats } from "./configured-nats.ts";
import { type Recorded, writeRelease } from "./releases.ts";

const recordings = join(import.meta.dirname, "../../packages/fakes/recordings");
const name = process.env.RELEASE_FIXTURE ?? "";

/**
 * `npm run fixture -- <name>` before a release: records all upstreams with this version, and writes the data from which
 * later versions upgrade.
 */
it.runIf(name !== "")("makes the fixture of a release", async () => {
  const nats = await startConfiguredNats({});
  await using database = await freshDatabase(migrated);
  let recorded: Recorded;
  {
    await using skaffold = await startFakeSkaffold({
      recording: loadSkaffold(join(recordings, "skaffold", "04-deploy-failure-then-recovery")),
    });
    await using vagrant = await startFakeVagrant({});
    await using host = await startRktHost(loadHost(join(recordings, "rkt", "05-app-exit-codes")));
    await using stack = await startStack({
      skaffold: [{ address: skaffold.address }],
      vagrant: [{ developer: "dana", address: vagrant.address }],
      rkt: [{ developer: "node-1", address: host.fake.address, interval: "10ms", timeout: "1h" }],
      servers: { nats, database: database.url },
    });
    const items = async (query = "") =>
      JSON.parse((await stack.httpCall("GET", `/api/v1/events?after=start&limit=1000${query}`)).body)
        .items as Recorded["events"];
    const isThere = async (kind: string, count: number) => (await items(`&kind=${kind}`)).length >= count;
    await until(() => isThere("upstream.connected", 3), { message: "all sources" });
    await skaffold.play();
    vagrant.playSample(loadVagrant(join(recordings, "vagrant", "samples", "up.jsonl"))).to(Number.POSITIVE_INFINITY);
    await until(() => isThere("command.finished", 1), { message: "Vagrant's command" });
    for (const kind of kinds) {
      host.playTo(kind, host.polls[kind].length);
      await settled(host, stack, kind);
    }
    await skaffold.end("graceful");
    await stack.drained(skaffold);
    const events = (await items()).map(({ id, position, kind }) => ({ id, position, kind }));
    recorded = { version, logFormat, events };
  }
  await nats.stop();
  const tables = await dumpTables(database.url);
  await writeRelease(name, { storeDir: join(nats.dataDir, "store"), recorded, tables });
  expect(recorded.events.length).toBeGreaterThan(100);
  await nats[Symbol.asyncDispose]();
});
