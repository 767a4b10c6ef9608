import type { ConnectedLog } from "@tapedeck/shared/log/connect-log";
import { LogUnusableError } from "@tapedeck/shared/log/jetstream";
import { logStart, sequenceOf } from "@tapedeck/shared/log/offset";
import { OutOfRangeError } from "@tapedeck/shared/log/out-of-range";
import { reportTablesEnd } from "@tapedeck/shared/log/tables-end";
import type { Logger } from "@tapedeck/shared/service/logger";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import { letReadersIn, limitReaders, type ReaderLogins } from "../db/access/grants.ts";
import { ForeignCheckpointError, lostLog, readCheckpoint } from "../db/checkpoint.ts";
import type { Database } from "../db/database.ts";
import { AlreadyProjectedError, withTables } from "../db/lock.ts";
import { migrate, NewerSchemaError } from "../db/migrate.ts";
import type { CheckpointRow } from "../db/schema.ts";
import type { View } from "../views/view.ts";
import { projectionVersion } from "../views/views.ts";
import type { BatchLimits } from "./batches.ts";
import type { ProjectedPosition } from "./progress.ts";
import { type Projected, project } from "./project.ts";
import { rebuild } from "./rebuild.ts";

export type KeepProjecting = {
  readonly database: Database;
  readonly databaseUrl: string;
  readonly readers: ReaderLogins;
  readonly openLog: (options: { readonly create: boolean }) => Promise<ConnectedLog>;
  /** Called when this query begins to project; what it gives is disposed when it stops. Not for a query that stands by. */
  readonly beside: (log: ConnectedLog) => Disposable;
  readonly views: readonly View[];
  readonly limits: BatchLimits;
  readonly progress: ProjectedPosition;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  readonly observer: ProjectionObserver;
  /** Fills materialized views after a rebuild. Projecting does not wait for it. */
  readonly fill: (views: readonly string[]) => void;
};

/** Learns what projecting has and does. */
export type ProjectionObserver = {
  /** The database has its tables and can be read. */
  hasTables(): void;
  /** The log that is read from now on; undefined: none. */
  usesLog(log: ConnectedLog | undefined): void;
  applied(applied: Projected): void;
  /** Why nothing is projected now; undefined: the tables follow the log. */
  waits(reason: string | undefined): void;
};

/** How long the first event of a batch waits for others. */
const companyMs = 20;

/** How often a standby query checks whether it is needed. */
const standbyMs = 500;

/**
 * Projects until the signal, and retries when the log or the database goes away. Rejects only for errors that do not go
 * away by themselves: a schema of a newer Tapedeck, tables of another log, an unusable nats-server.
 */
export async function keepProjecting(options: KeepProjecting): Promise<void> {
  const { progress, logger, signal, observer } = options;
  await using log = new HeldLog(options);
  const retry = backoff(100, 2_000);
  let lastReason = "";
  let areLimited = false;
  const admitReaders = async () => {
    const leftOut = [...(await letReadersIn(options.database, options.readers.developers))];
    if (areLimited) return;
    leftOut.push(...(await limitReaders(options.database, options.readers)));
    areLimited = true;
    if (leftOut.length > 0) logger.warn({ leftOut }, "some restrictions of the database's readers are not in force");
  };
  while (!signal.aborted) {
    try {
      await projectOnce(options, log, admitReaders, () => {
        retry.reset();
        lastReason = "";
      });
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof AlreadyProjectedError) {
        await standBy(options, log);
        continue;
      }
      // The log itself is fine where it lacks something: rebuilds and answers about the past read it.
      if (!(error instanceof OutOfRangeError)) await log.close();
      if (isFinal(error)) throw error;
      areLimited = false; // after an outage the database may be another one
      const reason = reasonOf(error);
      observer.waits(reason);
      if (reason !== lastReason)
        logger.warn({ err: error, position: progress.position }, "projecting was interrupted and will continue");
      lastReason = reason;
      await delay(retry.next(), signal);
    }
  }
}

async function projectOnce(
  options: KeepProjecting,
  held: HeldLog,
  admitReaders: () => Promise<void>,
  onWorking: () => void,
): Promise<void> {
  const { database, databaseUrl, views, limits, progress, logger, signal, observer, beside, fill } = options;
  await migrate(database);
  await admitReaders();
  observer.hasTables();

  const checkpoint = await readCheckpoint(database.db);
  const log = await held.open(checkpoint);
  const { reader } = log;
  progress.advance(checkpoint?.position ?? logStart);
  if (checkpoint?.epoch === reader.epoch && checkpoint.projection !== projectionVersion(views)) {
    logger.info({ from: checkpoint.projection, to: projectionVersion(views) }, "rebuilding the tables");
    observer.waits("the tables are rebuilt from the log, because this version builds them differently");
    await rebuild({ databaseUrl, log: reader, views, limits, signal, fill });
    return;
  }
  let epoch = checkpoint?.epoch ?? reader.epoch;
  const work = withTables(database, async function* (connection, lost) {
    // Before the log is read: if it has lost its end, ingest must not assign these positions again.
    using _beside = beside(log);
    using _telling = reportTablesEnd(log.nats, () => ({ epoch, seq: sequenceOf(progress.position) }));
    yield* project({
      connection,
      log: reader,
      views,
      signal: AbortSignal.any([signal, lost]),
      limits: { ...limits, company: { ms: companyMs, readers: progress } },
    });
  });
  for await (const applied of work) {
    epoch = reader.epoch;
    onWorking();
    observer.waits(undefined);
    progress.advance(applied.position);
    observer.applied(applied);
    logSetAside(logger, applied);
  }
}

/** One line a batch, because a source may send many of them. */
function logSetAside(logger: Logger, { setAside }: Projected): void {
  const [first] = setAside;
  if (first === undefined) return;
  const { source, session, kind } = first.recorded.event;
  logger.warn(
    { err: first.error, position: first.recorded.offset, source, session, kind, events: setAside.length },
    "events can't be applied to the tables and are set aside; the first one is named",
  );
}

/**
 * Another query projects. This one answers, with a log of its own for what is not in the tables, and takes over when the
 * other is gone.
 */
async function standBy({ database, progress, signal, observer }: KeepProjecting, log: HeldLog): Promise<void> {
  observer.waits(undefined);
  const checkpoint = await readCheckpoint(database.db).catch(() => undefined);
  if (checkpoint !== undefined) progress.advance(checkpoint.position);
  // The tables are of another log meanwhile: that is the one to answer from.
  if (checkpoint !== undefined && checkpoint.epoch !== log.epoch) await log.close();
  await delay(standbyMs, signal);
}

/** The log that answers are made from. It stays open while query stands by. */
class HeldLog implements AsyncDisposable {
  readonly #options: Pick<KeepProjecting, "openLog" | "observer">;
  #log: ConnectedLog | undefined;

  constructor(options: Pick<KeepProjecting, "openLog" | "observer">) {
    this.#options = options;
  }

  get epoch(): string | undefined {
    return this.#log?.reader.epoch;
  }

  /** Tables that have events show that there was a log, and one that begins would take its place. */
  async open(checkpoint: CheckpointRow | undefined): Promise<ConnectedLog> {
    const hasEvents = checkpoint !== undefined && checkpoint.position > logStart;
    this.#log ??= await this.#options.openLog({ create: !hasEvents }).catch((cause: unknown) => {
      throw hasEvents && isLogMissing(cause) ? lostLog(checkpoint, cause) : cause;
    });
    this.#options.observer.usesLog(this.#log);
    return this.#log;
  }

  async close(): Promise<void> {
    const log = this.#log;
    this.#log = undefined;
    this.#options.observer.usesLog(undefined);
    await log?.[Symbol.asyncDispose]();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Tables without these events would be wrong, and nothing would show it: so they stay where they are. */
function reasonOf(error: unknown): string {
  if (error instanceof OutOfRangeError && error.details.loss === "dropped") {
    return `the tables can't follow the log, because a limit of its stream has dropped events that they lack (${error.message}): \`tapedeck rebuild\` makes them from what the log still has`;
  }
  return error instanceof Error ? error.message || error.name : String(error);
}

function isLogMissing(error: unknown): boolean {
  return (
    error instanceof LogUnusableError && error.cause instanceof Error && error.cause.name === "StreamNotFoundError"
  );
}

function isFinal(error: unknown): boolean {
  return (
    error instanceof NewerSchemaError || error instanceof ForeignCheckpointError || error instanceof LogUnusableError
  );
}
