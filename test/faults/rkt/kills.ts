import { join } from "node:path";
import { recordings } from "@tapedeck/fakes/recordings";
import { type InventoryKind, loadRecording } from "@tapedeck/fakes/rkt/recording";
import { readConfig } from "@tapedeck/query/config";
import { startQuery } from "@tapedeck/query/query";
import { migrated } from "@tapedeck/query/testing/migrated";
import { projectUntil } from "@tapedeck/query/testing/run-projection";
import { contents, rktOrder } from "@tapedeck/query/testing/tables";
import { endOf, sequenceOf } from "@tapedeck/shared/log/offset";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { sourceParts } from "@tapedeck/shared/source";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { type Seeded, seeded } from "@tapedeck/shared/testing/seeded";
import { until } from "@tapedeck/shared/testing/until";
import { expect } from "vitest";
import {
  type Host,
  kinds,
  pollsLater,
  type RktHarness,
  recorded,
  rktHarness,
  startHost,
} from "../../harness/rkt-harness.ts";
import type { ServiceProcess } from "../service-process.ts";
import { gapsIn, sameHistory } from "./history.ts";
import type { History } from "./recorded-facts.ts";

const fixtures = recordings.rkt;

/**
 * The faults of ingest, each on all hosts at once:
 *
 * - hanging: killed while its polls hang, with everything observed in the log;
 * - answered: killed when the first hosts have answered one more row, with its events perhaps in the log, perhaps not;
 * - asked: killed when it inspects one pod or image, as it does after some rows;
 * - stopped: ended by SIGTERM when the first hosts have answered one more row;
 * - log: NATS is killed, and comes back; ingest keeps running;
 * - both: NATS is killed, one more row is answered, and ingest is killed before NATS is back.
 */
export const faults = ["hanging", "answered", "asked", "stopped", "log", "both"] as const;
export type Fault = (typeof faults)[number];

/** All are played at once, each by its own host. */
const scenarios = [
  "01-full-lifecycle",
  "02-fast-and-skipped-states",
  "03-prepare-aborted",
  "05-app-exit-codes",
  "10-blocking-start",
  "11-image-cache",
  "14-false-aborted-prepare",
];

export type Kills = {
  readonly faults: readonly Fault[];
  /** Default: all. */
  readonly folders?: readonly string[];
};

/** The recording includes a ListPods call that rkt never answers: this is its timeout. */
const stageTimeouts: Readonly<Record<string, string>> = { "10-blocking-start": "5s" };

/**
 * Plays scenarios twice: undisturbed, and with faults at random rows of them. Compares the second record with the
 * first, and the tables built meanwhile with rebuilt ones.
 *
 * A host does not change while it is not polled (`repeatOnReconnect`): changes in between could not be known. For the
 * same reason at most one reported row may be missing in the log when ingest is killed; but what ingest has held back
 * of the row before is lost with it (see `knowableFacts`).
 */
export async function rktKillsLeaveNoTrace({ faults, folders = scenarios }: Kills): Promise<void> {
  const random = seeded("rkt kills");
  await using cleanup = new AsyncDisposableStack();
  const harness = cleanup.use(await rktHarness());
  const database = cleanup.use(await freshDatabase(migrated));
  const query = cleanup.use(await startQuery(queryConfig(harness, database.url), silentLogger));
  const hosts = (run: string) =>
    Promise.all(
      folders.map(async (folder) =>
        cleanup.use(await startHost(`${run}-${folder}`, loadRecording(join(fixtures, folder)))),
      ),
    );
  const settings = ({ name }: Host) => {
    const timeout = stageTimeouts[name.replace(/^\w+-/, "")];
    return timeout === undefined ? {} : { timeout };
  };

  const calm = await hosts("calm");
  const undisturbed = await harness.ingest(calm, settings);
  await playedToTheEnd(undisturbed, calm);
  await undisturbed.kill("SIGTERM");

  const wild = await hosts("wild");
  const before = await Promise.all(calm.map(async (host) => ({ host, events: await harness.events(host) })));
  const rows = before.map((history) => rowsOf(history, faults.length, random));
  const hold = (round: number) => {
    for (const [index, host] of wild.entries())
      for (const kind of kinds) host.playTo(kind, rows[index]?.[kind][round] ?? Number.POSITIVE_INFINITY);
  };
  hold(0);
  const ingest = await harness.ingest(wild, settings);
  for (const [round, fault] of faults.entries()) {
    await until(() => wild.every((host) => host.stands()), {
      message: `all hosts to stand before ${fault} (${round})`,
    });
    await allRecorded(ingest, wild);
    await strike(fault, { harness, ingest, hosts: wild, random });
    hold(round + 1);
  }
  await playedToTheEnd(ingest, wild);

  for (const [index, history] of before.entries()) {
    const host = wild[index];
    if (host === undefined) continue;
    expect(gapsIn(history.events).length).toBeLessThanOrEqual(stageTimeouts[folders[index] ?? ""] ? 1 : 0);
    sameHistory(history, { host, events: await harness.events(host) });
  }
  const lastSeq = sequenceOf((await harness.log.bounds()).lastOffset);
  const workspaces = new Set(wild.map(({ source }) => sourceParts(source).workspace));
  await until(() => [...workspaces].every((workspace) => query.positionOf(workspace) >= endOf(lastSeq)), {
    message: "query to have folded all",
  });
  await sameTables(harness, database.url, lastSeq);
  console.log(`rkt kills: ${faults.join(" ")}; ${wild.length} hosts, ${lastSeq} events in the log`);
}

type Struck = {
  readonly harness: RktHarness;
  readonly ingest: ServiceProcess;
  readonly hosts: readonly Host[];
  readonly random: Seeded;
};

async function strike(fault: Fault, { harness, ingest, hosts, random }: Struck): Promise<void> {
  switch (fault) {
    case "hanging":
      await ingest.kill();
      return await ingest.start();
    case "answered":
    case "stopped":
      await reportOneMore(hosts, 1 + random.below(hosts.length));
      await ingest.kill(fault === "answered" ? "SIGKILL" : "SIGTERM");
      return await ingest.start();
    case "asked": {
      const request = Promise.withResolvers<void>();
      for (const host of hosts) {
        host.onInspect = () => {
          // Kills at once: the call is answered by the next turn.
          process.kill(ingest.pid, "SIGKILL");
          for (const other of hosts) other.onInspect = undefined;
          request.resolve();
        };
      }
      await Promise.race([request.promise, reportOneMore(hosts, hosts.length)]);
      for (const host of hosts) host.onInspect = undefined;
      await ingest.kill();
      return await ingest.start();
    }
    case "log":
      await harness.nats.kill();
      await reportOneMore(hosts, hosts.length);
      await harness.nats.restart();
      return await recorded(ingest);
    case "both":
      await harness.nats.kill();
      await reportOneMore(hosts, 1 + random.below(hosts.length));
      await ingest.kill();
      await harness.nats.restart();
      return await ingest.start();
  }
}

/** Advances all hosts by a row, of pods or of images; resolves when so many have answered it. */
async function reportOneMore(hosts: readonly Host[], count: number): Promise<void> {
  const before = hosts.map(({ fake }) => fake.played.pods + fake.played.images);
  const movable = hosts.filter((host) => kinds.some((kind) => host.fake.played[kind] < host.rows[kind])).length;
  for (const host of hosts) for (const kind of kinds) host.playTo(kind, host.fake.played[kind] + 2);
  const moved = () =>
    hosts.filter(({ fake }, index) => fake.played.pods + fake.played.images > (before[index] ?? 0)).length;
  await until(() => moved() >= Math.min(count, movable), { message: `${count} hosts to tell one row more` });
}

/**
 * The row before which the kill of each round and kind happens: half of them at rows with events in the undisturbed
 * run.
 */
function rowsOf({ host, events }: History, rounds: number, random: Seeded) {
  const some = (kind: InventoryKind) => {
    const eventful = events.flatMap(({ event: { channel, observed_at } }) => {
      const row = channel === kind && observed_at ? host.rowAt(kind, observed_at) : 0;
      // The row itself is answered next, or was the last one to be answered.
      return row === 0 ? [] : [row, row + 1];
    });
    return Array.from({ length: rounds }, () => {
      const row = random.below(2) === 0 ? eventful[random.below(eventful.length)] : undefined;
      return row ?? 1 + random.below(host.rows[kind] + 1);
    }).sort((a, b) => a - b);
  };
  return { pods: some("pods"), images: some("images") };
}

async function playedToTheEnd(ingest: ServiceProcess, hosts: readonly Host[]): Promise<void> {
  for (const host of hosts) for (const kind of kinds) host.playTo(kind, Number.POSITIVE_INFINITY);
  await Promise.all(
    hosts.map(async (host) => {
      const isOver = () => kinds.every((kind) => host.fake.played[kind] === host.rows[kind]);
      await until(isOver, { message: `${host.name} to be played` });
      // The next polls prove what the last row alone does not.
      await pollsLater(host, 4);
    }),
  );
  await allRecorded(ingest, hosts);
}

/** Resolves when all that the hosts have reported to ingest so far is in the log, except what it holds back. */
async function allRecorded(ingest: ServiceProcess, hosts: readonly Host[]): Promise<void> {
  const marks = hosts.map(({ observations }) => observations.takenIn());
  await recorded(ingest);
  for (const mark of marks) mark();
}

function queryConfig({ nats }: RktHarness, database: string) {
  return readConfig({
    env: {
      TAPEDECK_NATS_URL: nats.url,
      TAPEDECK_POSTGRES_URL: database,
      TAPEDECK_SERVICES_KEY: "test-key",
      TAPEDECK_QUERY_GRPC_PORT: "0",
      TAPEDECK_QUERY_HEALTH_PORT: "0",
    },
  });
}

/** Compares the tables built event by event with those rebuilt at once. */
async function sameTables({ log }: RktHarness, url: string, lastSeq: number): Promise<void> {
  await using anew = await freshDatabase(migrated);
  await projectUntil(anew.url, log, lastSeq);
  const tables = await contents(url, rktOrder);
  expect(tables.rkt_pods?.length).toBeGreaterThan(0);
  expect(await contents(anew.url, rktOrder)).toEqual(tables);
}
