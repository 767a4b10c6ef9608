import { join } from "node:path";
import { credentials } from "@grpc/grpc-js";
import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import type { ListOperationsResponse } from "@tapedeck/proto/tapedeck/v1/lists";
import {
  GetStateRequest,
  type GetStateResponse,
  ListOperationsRequest,
  TapedeckClient,
} from "@tapedeck/proto/tapedeck/v1/tapedeck";
import { migrated } from "@tapedeck/query/testing/migrated";
import { logStart, type Offset } from "@tapedeck/shared/log/offset";
import { parsePosition } from "@tapedeck/shared/log/position";
import { defaultQuery, QueryMapStore, queriesOf } from "@tapedeck/shared/log/queries/query-map";
import { delay } from "@tapedeck/shared/sync/delay";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { searched } from "@tapedeck/shared/testing/searches";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { Client } from "pg";
import { expect, it } from "vitest";
import { startOtherWorkspace } from "./other-workspace.ts";
import { type Processes, startProcesses } from "./processes.ts";
import { framesOf, holes, skaffoldSource, sourceEvents } from "./recorded-events.ts";
import { type ServiceProcess, startServiceProcess } from "./service-process.ts";

const folder = "01-dev-success-3-artifacts-5-iterations";

/** Between two requests of a reader. */
const pauseMs = searched({ short: 20, long: 5 });

/** How long a query keeps rows that another one answers with follows from this. */
const settings = { TAPEDECK_LIMITS_QUERY: "5s" };

/** A Tapedeck that records a Skaffold without an end, and what starts a second query with a database of its own. */
async function harness() {
  await using stack = new AsyncDisposableStack();
  const recording = loadRecording(join(recordings.skaffold, folder));
  const loop = { pauseMs: 100 };
  const fake = stack.use(await startFakeSkaffold({ recording, speed: 8, loop, leavingInReplayHangs: false }));
  const all = stack.use(
    await startProcesses([{ developer: "alice", project: "shop", address: fake.address }], settings),
  );
  const nats = stack.adopt(await connect({ servers: all.nats }), (nc) => nc.close());
  const database = stack.use(await freshDatabase(migrated));
  const map = new QueryMapStore(nats);
  const advertise = `127.0.0.1:${await ownPort()}`;
  const env = {
    ...settings,
    TAPEDECK_NATS_URL: all.nats,
    TAPEDECK_POSTGRES_URL: database.url,
    TAPEDECK_SERVICES_KEY: "test-key",
    TAPEDECK_QUERY_ADVERTISE: advertise,
    TAPEDECK_QUERY_GRPC_PORT: advertise.split(":")[1] ?? "",
    TAPEDECK_QUERY_TEXT_ROWS: "true",
  };
  const source = skaffoldSource("alice");
  const owned = stack.move();
  return {
    all,
    fake,
    source,
    advertise,
    databases: { first: all.database, second: database.url },
    events: sourceEvents(all.log, source),
    entry: async () => queriesOf(await map.read(), "default"),
    startSecond: async (workspaces = "default") =>
      owned.use(await startServiceProcess("query", { ...env, TAPEDECK_QUERY_WORKSPACES: workspaces })),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

type Harness = Awaited<ReturnType<typeof harness>>;

/** Asks again and again, over HTTP and gRPC: no answer may fail, be older than the one before, or lack a loop that it had. */
function keepReading({ http, grpc }: Pick<Processes, "http" | "grpc">, source: string) {
  const over = new AbortController();
  const faults: string[] = [];
  let answers = 0;
  const client = new TapedeckClient(grpc, credentials.createInsecure());
  const ask = <T>(call: (done: (error: Error | null, answer: T) => void) => void) =>
    new Promise<T>((resolve, reject) => call((error, answer) => (error === null ? resolve(answer) : reject(error))));
  const get = async (path: string) => {
    const response = await fetch(`http://${http}${path}`);
    const body = (await response.json()) as { position: string; items?: readonly { id: string }[] };
    if (!response.ok) throw new Error(JSON.stringify(body));
    return { position: response.headers.get("tapedeck-position") ?? body.position, items: body.items ?? [] };
  };
  const readers = {
    "operations over HTTP": () => get("/api/v1/operations?kind=loop&limit=1000"),
    "sessions over HTTP": () => get("/api/v1/sessions"),
    "state over HTTP": () => get(`/api/v1/state?source=${source}`),
    "operations over gRPC": () =>
      ask<ListOperationsResponse>((done) =>
        client.listOperations(ListOperationsRequest.fromPartial({ filter: { kinds: ["loop"] }, limit: 1_000 }), done),
      ),
    "state over gRPC": async () => {
      const state = await ask<GetStateResponse>((done) =>
        client.getState(GetStateRequest.fromPartial({ source }), done),
      );
      return { position: state.position, items: [] };
    },
  };
  const read = async (name: string, reader: () => Promise<{ position: string; items: readonly { id: string }[] }>) => {
    let [last, seen]: [Offset, Set<string>] = [logStart, new Set()];
    while (!over.signal.aborted) {
      try {
        const { position, items } = await reader();
        const offset = parsePosition(position)?.offset;
        if (offset === undefined) faults.push(`${name}: no position (${position})`);
        else if (offset < last) faults.push(`${name}: at ${offset} after ${last}`);
        last = offset ?? last;
        const ids = new Set(items.map(({ id }) => id));
        for (const id of seen) if (!ids.has(id)) faults.push(`${name}: lacks ${id}`);
        seen = ids;
        answers += 1;
      } catch (error) {
        faults.push(`${name}: ${error instanceof Error ? error.message : error}`);
      }
      await delay(pauseMs, over.signal);
    }
  };
  const running = Promise.all(Object.entries(readers).map(([name, reader]) => read(name, reader)));
  return {
    faults,
    answers: () => answers,
    async [Symbol.asyncDispose]() {
      over.abort();
      await running;
      client.close();
    },
  };
}

/** Waits until so much more was played and recorded. */
async function goesOn({ events, fake }: Harness, frames: number): Promise<void> {
  const goal = fake.said.v1 + frames;
  const isThere = async () => framesOf(await events(), "v1").length >= goal;
  await until(isThere, { message: `${frames} further frames to be recorded` });
}

const at = async ({ entry }: Harness, name: string) => {
  const isThere = async () => (await entry()).at === name;
  await until(isThere, { message: `the workspace to be at ${name || "the first query"}` });
};

const alone = async ({ entry }: Harness) => {
  const isAlone = async () => (await entry()).also.length === 0;
  await until(isAlone, { message: "the query before to have no rows left" });
};

async function rowsIn(url: string): Promise<number> {
  const client = new Client(url);
  await client.connect();
  try {
    const { rows } = await client.query<{ count: string }>("select count(*) from tapedeck.operations");
    return Number(rows[0]?.count);
  } finally {
    await client.end();
  }
}

it("a workspace is taken over while it is recorded and read, through kills at each step", async () => {
  await using on = await harness();
  const { all, fake, source, advertise, databases } = on;
  const playing = fake.play();
  playing.catch(() => {});
  await using other = await startOtherWorkspace(all);
  await goesOn(on, 150);
  await until(async () => (await rowsIn(on.databases.first)) > 20, { message: "the first tables to have operations" });
  await using reading = keepReading(all, source);

  // Before it has caught up: nothing is asked of it.
  const second: ServiceProcess = await on.startSecond();
  await until(async () => (await on.entry()).also.includes(advertise), {
    message: "the second query to be in the map",
  });
  await second.kill();
  expect((await on.entry()).at).toBe(defaultQuery);
  await goesOn(on, 50);
  await second.start();
  await at(on, advertise);

  // Before the first one has deleted its rows, which nobody asks it for any more.
  const answered = reading.answers();
  await until(() => reading.answers() > answered + 50, { message: "the second query to answer" });
  expect(reading.faults).toEqual([]);
  await all.services.query.kill();
  await goesOn(on, 50);
  await until(() => reading.answers() > answered + 100, { message: "answers without the first query" });
  await all.services.query.start();
  await alone(on);
  expect(await rowsIn(on.databases.first)).toBe(0);
  await goesOn(on, 50);
  expect(reading.faults).toEqual([]);

  // Each event is there once, and none was written late because of it.
  await fake.end("graceful");
  await until(async () => (await on.events()).some(({ event }) => event.kind === "session.ended"), {
    message: "the session to end",
  });
  expect(holes(await on.events())).toEqual([]);
  const { lastOffset } = await all.log.bounds();
  const positionOf = async () => {
    const response = await fetch(`http://${all.http}/api/v1/status`);
    return parsePosition(((await response.json()) as { position: string }).position)?.offset ?? logStart;
  };
  await until(async () => (await positionOf()) >= lastOffset, { message: "the tables to reach the log's end" });
  expect(reading.faults).toEqual([]);

  // The workspace that is not taken over has lost nothing, and has rows in its own tables alone.
  await other.finish();
  expect(await other.idsIn(databases.second)).toEqual([]);
});

it("a workspace is given back while it is recorded and read", async () => {
  await using on = await harness();
  const { all, fake, source, advertise } = on;
  fake.play().catch(() => {});
  await goesOn(on, 100);
  const taking = await on.startSecond();
  await at(on, advertise);
  await alone(on);
  await taking.kill("SIGTERM");
  await on.startSecond("");
  const answers = async () => (await fetch(`http://${all.http}/api/v1/sessions`)).ok;
  await until(answers, { message: "the query that gives it back to answer" });
  await using reading = keepReading(all, source);
  await at(on, defaultQuery);
  await alone(on);
  await goesOn(on, 50);
  expect(await rowsIn(on.databases.second)).toBe(0);
  expect(reading.answers()).toBeGreaterThan(50);
  expect(reading.faults).toEqual([]);
});
