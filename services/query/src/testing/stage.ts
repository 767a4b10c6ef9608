import { jetstreamManager } from "@nats-io/jetstream";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { type Log, openLog } from "@tapedeck/shared/log/jetstream";
import { endOf, logStart, type Offset, offsetOf, type Sequence, sequenceOf } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { everySubject, streamOf, workspaceFilter } from "@tapedeck/shared/log/subjects";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { settingsReader } from "@tapedeck/shared/service/settings";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { startTestNats, type TestNats } from "@tapedeck/shared/testing/nats";
import { connectThroughRestarts } from "@tapedeck/shared/testing/nats-connection";
import { until } from "@tapedeck/shared/testing/until";
import type { QueryConfig } from "../config.ts";
import { readerLimits } from "../db/access/limits.ts";
import { openDatabase } from "../db/database.ts";
import { privateSchema } from "../db/private.ts";
import { type Query, startQuery } from "../query.ts";
import { acme } from "./logs.ts";
import { migrated } from "./migrated.ts";
import { write, writeTogether } from "./scenario.ts";

export const servicesKey = "key of the services";

/**
 * A log and a database that belong to the test alone. The log takes the events of all workspaces, so that a test of the
 * projection has them in one order. A real one has those of its workspace alone: see streams.ts.
 */
export async function stage() {
  await using stack = new AsyncDisposableStack();
  const nats: TestNats = stack.use(await startTestNats());
  const connection = stack.adopt(await connectThroughRestarts(nats.url), (nc) => nc.close());
  const log: Log = stack.use(await openLog(connection, { workspace: "acme", timeoutMs: 20_000 }));
  const jsm = await jetstreamManager(connection);
  await jsm.streams.update(streamOf("acme"), { subjects: [everySubject] });
  const database = stack.use(await freshDatabase(migrated));
  const config: QueryConfig = {
    grpc: { host: "127.0.0.1", port: 0 },
    connectionLimits: { connections: 1_000, arrivalMs: 60_000 },
    health: { host: "127.0.0.1", port: 0 },
    nats: { url: nats.url },
    databaseUrl: database.url,
    analystPassword: undefined,
    developers: "shown",
    readers: readerLimits(settingsReader({ env: {} })),
    servicesKey,
    tls: undefined,
    // Only a broken test, or one about this, waits so long.
    timeoutMs: 100_000,
    textRows: false,
    batchEvents: 1_000,
    metrics: { by: "project", series: 12_000 },
    advertise: "",
    workspaces: [],
    leaveMs: 200,
  };
  const all = stack.move();
  return {
    nats,
    log,
    databaseUrl: database.url,
    config,
    /** Resolves with the sequence of each event. */
    write: (events: readonly Event[]) => write(log, events),
    /** Resolves with where each event stands; see writeTogether. */
    writeTogether: (events: readonly Event[], perMessage: number) => writeTogether(log, events, perMessage),
    /** Begins the log of another workspace, and writes there. From now on the first log takes its own events alone. */
    async writeIn(workspace: string, events: readonly Event[]) {
      await jsm.streams.update(streamOf("acme"), { subjects: [workspaceFilter("acme")] });
      await using other = await openLog(connection, { workspace, timeoutMs: 20_000 });
      return await write(other, events);
    },
    written: (offset: Offset) => formatPosition({ epoch: log.epoch, offset }),
    /** The position of the event in a message. */
    at: (seq: Sequence) => formatPosition({ epoch: log.epoch, offset: offsetOf(seq) }),
    /** The position after a whole message: how far the tables or the log have come. */
    endAt: (seq: Sequence) => formatPosition({ epoch: log.epoch, offset: endOf(seq) }),
    startQuery: (more: Partial<QueryConfig> = {}) => startQuery({ ...config, ...more }, silentLogger),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

export type Stage = Awaited<ReturnType<typeof stage>>;

/** Waits for the tables of these workspaces, by default acme: each has its own position. */
export async function reaches(query: Query, seq: Sequence, ...workspaces: readonly string[]): Promise<void> {
  const all = workspaces.length === 0 ? [acme] : workspaces;
  // A long log takes minutes on a machine that is busy.
  await until(() => all.every((workspace) => query.positionOf(workspace) >= endOf(seq)), {
    message: `query to be at message ${seq}`,
    deadlineMs: 400_000,
  });
}

/** Writes events, some in each message; resolves with the sequence of the last one. */
export async function written(on: Stage, events: readonly Event[]): Promise<number> {
  const offsets = await on.writeTogether(events, 5);
  return sequenceOf(offsets.at(-1) ?? logStart);
}

/** Names of the schemas that hold tables of the projection, in their order. */
export async function schemas(url: string): Promise<string[]> {
  await using database = openDatabase({ url, connections: 1 });
  const found = await database.db.introspection.getSchemas();
  return found
    .map(({ name }) => name)
    .filter((name) => name.startsWith("tapedeck") && name !== privateSchema)
    .toSorted();
}
