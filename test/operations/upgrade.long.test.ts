import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { readConfig as readGatewayConfig } from "@tapedeck/gateway/config";
import { startGateway } from "@tapedeck/gateway/gateway";
import { readConfig as readIngestConfig } from "@tapedeck/ingest/config";
import { startIngest } from "@tapedeck/ingest/ingest";
import { readConfig as readQueryConfig } from "@tapedeck/query/config";
import { startQuery } from "@tapedeck/query/query";
import { fillTables, migrateTo, migrationNames } from "@tapedeck/query/testing/release-tables";
import { contents, differencesOf, rktOrder, vagrantOrder } from "@tapedeck/query/testing/tables";
import { streamOf } from "@tapedeck/shared/log/subjects";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { Client } from "pg";
import { describe, expect, it } from "vitest";
import { type StackServers, startStack } from "../stack/stack.ts";
import { startConfiguredNats } from "./configured-nats.ts";
import { type Recorded, readReleases } from "./releases.ts";

const releases = await readReleases();

/** All tables of all upstreams. */
const tablesIn = async (url: string) => ({
  ...(await contents(url)),
  ...(await contents(url, rktOrder)),
  ...(await contents(url, vagrantOrder)),
});

/** Starts this version on the data, without sources. Ends when `use` does. */
async function opened(servers: StackServers): Promise<Recorded["events"]> {
  await using stack = await startStack({ servers });
  await stack.caughtUp();
  const ready = async () => JSON.parse((await stack.httpCall("GET", "/readyz")).body).ready === true;
  await until(ready, { message: "all services to be ready" });
  const answer = await stack.httpCall("GET", "/api/v1/events?after=start&limit=1000");
  return (JSON.parse(answer.body).items as Recorded["events"]).map(({ id, position, kind }) => ({
    id,
    position,
    kind,
  }));
}

/** The first events that this version serves, as many as were recorded: a start may add that a source was lost. */
async function eventsOf(servers: StackServers, recorded: Recorded | undefined): Promise<Recorded["events"]> {
  return (await opened(servers)).slice(0, recorded?.events.length);
}

const ports = ["INGEST_GRPC", "INGEST_HEALTH", "QUERY_GRPC", "QUERY_HEALTH", "GATEWAY_GRPC", "GATEWAY_HTTP"];
const ownPorts = Object.fromEntries(ports.map((name) => [`TAPEDECK_${name}_PORT`, "0"]));

/** Starts ingest, query and the gateway, each until it gives up. */
function services({ nats, database }: StackServers): readonly (() => Promise<never>)[] {
  const env = { ...ownPorts, TAPEDECK_NATS_URL: nats.url, TAPEDECK_POSTGRES_URL: database };
  const starts = [
    () => startIngest(readIngestConfig({ env }), silentLogger),
    () => startQuery(readQueryConfig({ env }), silentLogger),
    () => startGateway(readGatewayConfig({ env }), silentLogger),
  ];
  return starts.map((start) => async () => {
    await using service = await start();
    return await service.failed;
  });
}

describe.each(releases)("the data folder of $name", ({ store, recorded, tables }) => {
  it("opens in this version", async () => {
    await using nats = await startConfiguredNats({ store });
    await using database = await freshDatabase();
    // A migration that was released never changes.
    expect(await migrateTo(database.url, tables.migrations.at(-1) ?? "")).toEqual(tables.schema);
    await fillTables(database.url, tables);
    expect(await eventsOf({ nats, database: database.url }, recorded)).toEqual(recorded.events);

    await using empty = await freshDatabase();
    await opened({ nats, database: empty.url });
    const expected = await tablesIn(empty.url);
    // Rows of an older version may be rebuilt after the first answers.
    const differences = async () => differencesOf(await tablesIn(database.url), expected);
    await until(async () => (await differences()).length === 0, {
      message: "the same tables",
    }).catch(async () => {
      expect(await differences()).toEqual([]);
    });
  });
});

it("there is the data of the first migration, and of each later one but the newest, whose tables other tests open", () => {
  const kept = releases.map(({ tables }) => tables.migrations.at(-1));
  const [first, ...later] = migrationNames;
  expect([first, ...later.slice(0, -1)].filter((name) => !kept.includes(name))).toEqual([]);
});

const newest = releases.at(-1);

it("makes the tables anew in an empty database", async () => {
  await using nats = await startConfiguredNats({ ...(newest && { store: newest.store }) });
  await using database = await freshDatabase();
  expect(await eventsOf({ nats, database: database.url }, newest?.recorded)).toEqual(newest?.recorded.events);
  const client = new Client(database.url);
  await client.connect();
  const { rows } = await client.query("select upstream from tapedeck.sources order by 1");
  await client.end();
  expect(rows.map(({ upstream }) => upstream)).toEqual(["rkt", "skaffold", "vagrant"]);
});

it("records on in a log of before", async () => {
  const recording = loadRecording(
    join(import.meta.dirname, "../../packages/fakes/recordings/skaffold/04-deploy-failure-then-recovery"),
  );
  await using nats = await startConfiguredNats({ ...(newest && { store: newest.store }) });
  await using database = await freshDatabase();
  await using fake = await startFakeSkaffold({ recording });
  await using stack = await startStack({
    skaffold: [{ developer: "bob", address: fake.address }],
    servers: { nats, database: database.url },
  });
  await fake.play();
  await stack.drained({ address: fake.address, said: fake.said });
  const sessionsOf = async (source: string) =>
    JSON.parse((await stack.httpCall("GET", `/api/v1/sessions?source=${source}`)).body).items.length;
  expect(await Promise.all(["alice/shop", "bob/shop"].map(sessionsOf))).toEqual([1, 1]);
});

it("refuses what a newer version has written", async () => {
  await using nats = await startTestNats();
  await using database = await freshDatabase();
  await opened({ nats, database: database.url });
  const connection = await connect({ servers: nats.url });
  const jsm = await jetstreamManager(connection);
  const { config } = await jsm.streams.info(streamOf("default"));
  await jsm.streams.update(streamOf("default"), { metadata: { ...config.metadata, "tapedeck-format": "3" } });
  await connection.close();

  const sentence = "the log has another format (3) than this version reads (2): use the version that wrote it.";
  const [ingest = expect.fail()] = services({ nats, database: database.url });
  await expect(ingest()).rejects.toThrow(sentence);
  // What is wrong with the log of one workspace concerns its callers alone.
  const env = { ...ownPorts, TAPEDECK_NATS_URL: nats.url, TAPEDECK_POSTGRES_URL: database.url };
  await using query = await startQuery(readQueryConfig({ env }), silentLogger);
  await using gateway = await startGateway(readGatewayConfig({ env }), silentLogger);
  const says = async (url: string) => (await (await fetch(url)).text()).includes(sentence);
  for (const url of [`${query.addresses.health}/readyz`, `${gateway.addresses.http}/api/v1/events`]) {
    await until(() => says(`http://${url}`), { message: `the sentence of ${url}` });
  }
});

it("refuses tables that a newer version has made", async () => {
  await using nats = await startTestNats();
  await using database = await freshDatabase();
  await opened({ nats, database: database.url });
  const client = new Client(database.url);
  await client.connect();
  await client.query("insert into tapedeck_internal.kysely_migration values ('9999-next', '')");
  await client.end();
  const [, query = expect.fail()] = services({ nats, database: database.url });
  await expect(query()).rejects.toThrow(/^the database has the schema of a newer Tapedeck .*: update Tapedeck/);
});
