import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { Log } from "@tapedeck/shared/log/jetstream";
import { startHealthServer } from "@tapedeck/shared/service/health";
import type { Logger } from "@tapedeck/shared/service/logger";
import { pause } from "@tapedeck/shared/sync/delay";
import { sql } from "kysely";
import type { ApiDeps } from "./api/deps.ts";
import { startApi } from "./api/server.ts";
import type { QueryConfig } from "./config.ts";
import { watchReaders } from "./db/access/watch-readers.ts";
import { openDatabase } from "./db/database.ts";
import { queryMetrics } from "./metrics.ts";
import { defaultLimits } from "./projecting/batches.ts";
import { connectLog } from "./projecting/connect-log.ts";
import { driftWatch } from "./projecting/drift-watch.ts";
import { keepProjecting } from "./projecting/keep-projecting.ts";
import { progress as newProgress } from "./projecting/progress.ts";
import { rebuild } from "./projecting/rebuild.ts";
import { folds } from "./views/folds.ts";
import { views } from "./views/views.ts";

export type Query = AsyncDisposable & {
  /** gRPC, "host:port". */
  readonly address: string;
  readonly addresses: Readonly<Record<"grpc" | "health", string>>;
  /** Position that the tables reflect. */
  readonly position: number;
  /** Rejects when it can't go on and won't mend by itself; the message is one sentence for people. */
  readonly failed: Promise<never>;
};

/** A failure that comes as soon as this is one of the start; a database or log that is away is not waited for. */
const startMs = 5_000;

/** Folds the log into Postgres and answers questions about it. */
export async function startQuery(config: QueryConfig, logger: Logger): Promise<Query> {
  await using stack = new AsyncDisposableStack();
  const stop = new AbortController();
  const progress = newProgress();
  const writes = stack.use(openDatabase({ url: config.databaseUrl, connections: 2 }));
  const reads = stack.use(openDatabase({ url: config.databaseUrl, statementTimeoutMs: config.patienceMs }));
  let hasTables = false;
  let log: Log | undefined;
  let waiting: string | undefined = "starting";

  const deps: ApiDeps = {
    database: () => {
      if (!hasTables) throw new TapedeckError("not_ready", "the database is not ready: try again in a moment");
      return reads;
    },
    log: () => {
      if (log === undefined) throw new TapedeckError("not_ready", "the log is away: try again in a moment");
      return log.reader;
    },
    progress,
    folds,
  };
  const api = stack.use(
    await startApi(deps, {
      ...config.grpc,
      door: config.door,
      key: config.servicesKey,
      patienceMs: config.patienceMs,
      rebuild: (signal, onProgress) =>
        rebuild({
          databaseUrl: config.databaseUrl,
          log: deps.log(),
          views: views({ textRows: config.textRows }),
          signal: AbortSignal.any([signal, stop.signal]),
          onProgress: (applied) => onProgress(applied.position),
        }),
      onError: (method, cause) => logger.error({ err: cause, method }, "a call failed"),
    }),
  );
  const metrics = queryMetrics(
    () => progress.position,
    async () => (await log?.reader.bounds().catch(() => undefined))?.lastSeq,
  );
  const drift = stack.use(driftWatch({ ...deps, logger, compared: metrics.compared }));
  const health = stack.use(
    await startHealthServer({
      ...config.health,
      checks: {
        projection: () => waiting,
        log: async () => (log === undefined ? "not opened yet" : whyNot(log.reader.bounds())),
        database: () => whyNot(sql`select 1`.execute(reads.db)),
      },
      metrics: metrics.registry,
    }),
  );

  const told = new Set<string>();
  const began = Promise.withResolvers<void>();
  const projecting = keepProjecting({
    database: writes,
    databaseUrl: config.databaseUrl,
    readers: { analystPassword: config.analystPassword, limits: config.readers },
    openLog: async () => {
      const opened = await connectLog(config.nats, logger, told);
      drift.listen(opened.nats);
      return opened;
    },
    views: views({ textRows: config.textRows }),
    limits: { ...defaultLimits, events: config.batchEvents },
    progress,
    logger,
    signal: stop.signal,
    on: {
      tables: () => {
        hasTables = true;
      },
      log: (opened) => {
        log = opened;
      },
      applied: metrics.applied,
      waiting: (reason) => {
        if (reason !== undefined && waiting === undefined) metrics.failed();
        waiting = reason;
        began.resolve();
      },
    },
  });
  const failed = new Promise<never>((_resolve, reject) => {
    projecting.catch((error: unknown) => {
      waiting = error instanceof Error ? error.message : String(error);
      reject(error);
    });
  });
  failed.catch(() => {}); // heard by whoever asks
  const watching = watchReaders({ database: reads, limits: config.readers, logger, signal: stop.signal });
  stack.defer(async () => {
    stop.abort();
    await Promise.all([projecting.catch(() => {}), watching]);
  });
  await Promise.race([began.promise, failed, pause(startMs, stop.signal)]);

  const running = stack.move();
  return {
    address: api.address,
    addresses: { grpc: api.address, health: health.address },
    get position() {
      return progress.position;
    },
    failed,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

async function whyNot(asked: Promise<unknown>): Promise<string | undefined> {
  try {
    await asked;
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message || error.name : String(error);
  }
}
