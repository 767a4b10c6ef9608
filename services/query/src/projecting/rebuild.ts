import type { LogReader } from "@tapedeck/shared/log/log";
import { laterOf, type Offset } from "@tapedeck/shared/log/offset";
import { OutOfRangeError } from "@tapedeck/shared/log/out-of-range";
import type { Logger } from "@tapedeck/shared/service/logger";
import { delay } from "@tapedeck/shared/sync/delay";
import { type Kysely, sql } from "kysely";
import { letReadersIn } from "../db/access/grants.ts";
import { assertOfThisLog, readCheckpoint } from "../db/checkpoint.ts";
import { type Database, internalSchema, liveSchema, openDatabase, schemasOf, type Tx } from "../db/database.ts";
import { withTables } from "../db/lock.ts";
import { migrate } from "../db/migrate.ts";
import { swapLock } from "../db/read.ts";
import type { Schema } from "../db/schema.ts";
import type { View } from "../views/view.ts";
import { projectionVersion } from "../views/views.ts";
import type { BatchLimits } from "./batches.ts";
import { dropDependants, isLockTimeout, readDependants, renewDependants } from "./dependants.ts";
import { fillViews } from "./fill-views.ts";
import { type Projected, project } from "./project.ts";

const shadowSchema = "tapedeck_rebuild";
/** Replaced tables have a schema of this name, or with a number after it, until nobody reads them any more. */
const retiredSchema = "tapedeck_retired";

/**
 * How long a statement waits for a lock that excludes readers. All readers wait behind it, so it gives up soon and tries
 * again: somebody may sit in a transaction for hours.
 */
const lockMs = 2_000;
const againMs = 500;
/** After this many attempts it reports what is in the way. */
const maxAttempts = 20;

/** Somebody keeps the new tables from taking the place of the old ones. */
export class SwapBlockedError extends Error {
  override readonly name = "SwapBlockedError";
}

export type Rebuild = {
  readonly databaseUrl: string;
  readonly log: LogReader;
  readonly views: readonly View[];
  readonly limits?: BatchLimits;
  /** Begin anew: an earlier rebuild may have what was removed from the log since. */
  readonly fresh?: boolean;
  readonly signal: AbortSignal;
  readonly onProgress?: (applied: Projected) => void;
  /** Takes the materialized views that are to be filled after the swap; by default they are filled before it resolves. */
  readonly fill?: (views: readonly string[]) => void;
  /** By default the views that can't be filled are only left empty. */
  readonly onUnfilled?: (view: string, error: unknown) => void;
};

/**
 * Builds all tables again from the log, beside the live ones, and swaps them in when they have caught up. Meanwhile the
 * live tables keep answering, and keep following the log if they can. Continues an earlier rebuild that was killed. A
 * running query need not be notified. What others made of the tables is made again (dependants.ts). Resolves with true at
 * the swap, or with false when the signal ended it before; throws as project does.
 * @throws DependantsError when something that others made does not fit the new tables: the old ones stay
 * @throws AlreadyProjectedError when another rebuild runs
 * @throws ForeignCheckpointError when the live tables are another log's
 * @throws SwapBlockedError when open transactions have read the live tables for too long
 */
export async function rebuild(options: Rebuild): Promise<boolean> {
  const { log, views, signal, onProgress = () => {}, fill, onUnfilled = () => {} } = options;
  await using shadow = openDatabase({ url: options.databaseUrl, schema: shadowSchema, connections: 3 });
  await assertSameLog(shadow, log);
  const { lastOffset: goal } = await log.bounds();
  const work = withTables(shadow, async function* (connection, held) {
    await prepare(shadow, options);
    await letReadersIn(shadow);
    yield* project({
      connection,
      log: readAnew(log, goal),
      views,
      signal: AbortSignal.any([signal, held]),
      ...(options.limits && { limits: options.limits }),
    });
  });
  let isAnalyzed = false;
  for await (const applied of work) {
    onProgress(applied);
    if (applied.position < goal) continue;
    if (!isAnalyzed) await analyze(shadow);
    isAnalyzed = true;
    const toFill = await swap(shadow, applied.position, signal);
    if (toFill === undefined) continue;
    if (fill === undefined) await fillViews(shadow, toFill, { signal, onUnfilled });
    else fill(toFill);
    return true;
  }
  return false;
}

/**
 * Reads what the log has up to its end from the log itself. The memory of a process that follows it may still have
 * messages that were removed with their workspace.
 */
function readAnew(log: LogReader, end: Offset): LogReader {
  return {
    ...log,
    async *follow(from, options) {
      if (from.afterOffset < end) {
        yield* log.history(from, end, options.signal);
        if (options.signal.aborted) return;
        options.reached?.(end);
      }
      yield* log.follow({ ...from, afterOffset: laterOf(from.afterOffset, end) }, options);
    },
  };
}

/**
 * The tables of a log that was lost may be all that is left of it.
 * @throws ForeignCheckpointError
 */
async function assertSameLog({ db }: Database, log: LogReader): Promise<void> {
  const live = db.withSchema(internalSchema(liveSchema));
  const checkpoint = (await hasTables(db, liveSchema)) ? await readCheckpoint(live) : undefined;
  if (checkpoint !== undefined) await assertOfThisLog(checkpoint, log);
}

async function hasTables(db: Kysely<Schema>, schema: string): Promise<boolean> {
  const { rows } = await sql<{ there: boolean }>`
    select to_regclass(${checkpointOf(schema)}) is not null as there`.execute(db);
  return rows[0]?.there === true;
}

const checkpointOf = (schema: string) => `${internalSchema(schema)}.checkpoint`;

/** Postgres itself analyzes new tables only after a minute or more, and plans queries badly until then. */
async function analyze({ db, schema }: Database): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select oid::regclass::text as name from pg_class
    where relnamespace = any(${schemasOf(schema)}::text[]::regnamespace[]) and relkind in ('r', 'p')`.execute(db);
  await sql`analyze ${sql.join(rows.map(({ name }) => sql.raw(name)))}`.execute(db);
}

/** Keeps the tables of an earlier rebuild, unless it is to begin anew, if the same projection built them from the same log. */
async function prepare(shadow: Database, { log, views, fresh = false }: Rebuild): Promise<void> {
  await dropRetired(shadow);
  const checkpoint = (await hasTables(shadow.db, shadowSchema)) ? await readCheckpoint(shadow.db) : undefined;
  const { lastOffset } = await log.bounds();
  const isReusable =
    !fresh &&
    checkpoint?.epoch === log.epoch &&
    checkpoint.projection === projectionVersion(views) &&
    checkpoint.position <= lastOffset &&
    (await isRetained(log, checkpoint.position));
  if (!isReusable) await dropSchemas(shadow, shadowSchema);
  await migrate(shadow);
}

/** Whether the log still has all that follows. */
async function isRetained(log: LogReader, after: Offset): Promise<boolean> {
  try {
    await log.assertRetained(after);
    return true;
  } catch (error) {
    if (error instanceof OutOfRangeError) return false;
    throw error;
  }
}

/**
 * The materialized views that are to be filled now. Undefined when the live tables follow the same log and are ahead, or
 * the signal came: nothing was swapped.
 */
async function swap({ db }: Database, position: Offset, signal: AbortSignal): Promise<readonly string[] | undefined> {
  for (let attempt = 1; !signal.aborted; attempt += 1) {
    try {
      const swapped = await swapOnce(db, position);
      if (swapped === undefined) return undefined;
      await dropRetired({ db });
      return swapped.toFill;
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
      if (attempt === maxAttempts) throw new SwapBlockedError(blocked, { cause: error });
      await delay(againMs, signal);
    }
  }
  return undefined;
}

const blocked =
  "the new tables can't replace the old ones, because transactions that have read them, or views of them, stay open: end these transactions (pg_stat_activity names them).";

/** What is to be filled when the tables have been swapped; undefined when they have not, because the live ones are ahead. */
async function swapOnce(db: Kysely<Schema>, position: Offset) {
  const retired = await freeName(db);
  return db.transaction().execute(async (tx) => {
    await sql`select set_config('lock_timeout', ${`${lockMs}ms`}, true)`.execute(tx);
    if (!(await hasTables(tx, liveSchema))) {
      await renameSchemas(tx, shadowSchema, liveSchema);
      return { toFill: [] };
    }
    // Checked before readers have to wait, and again when there is no writer any more.
    if (await isLiveAhead(tx, position)) return undefined;
    await swapLock(tx);
    if (await isLiveAhead(tx, position)) return undefined;
    // Behind the lock, although readers wait for it: before it, the live tables would be ahead again each time that it is
    // over, wherever events come often.
    const dependants = await readDependants(tx, { live: liveSchema, shadow: shadowSchema, retired });
    await dropDependants(tx, dependants);
    await renameSchemas(tx, liveSchema, retired);
    await renameSchemas(tx, shadowSchema, liveSchema);
    await renewDependants(tx, dependants, retired);
    return dependants;
  });
}

async function renameSchemas(tx: Tx, from: string, to: string): Promise<void> {
  await sql`alter schema ${sql.id(from)} rename to ${sql.id(to)}`.execute(tx);
  await sql`alter schema ${sql.id(internalSchema(from))} rename to ${sql.id(internalSchema(to))}`.execute(tx);
}

async function retiredSchemas(db: Kysely<Schema>): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string }>`
    select nspname as name from pg_namespace where nspname ~ ${`^${retiredSchema}(_[0-9]+)?$`} order by 1`.execute(db);
  return rows.map(({ name }) => name);
}

/** The schema of an earlier rebuild may still be read. */
async function freeName(db: Kysely<Schema>): Promise<string> {
  const taken = await retiredSchemas(db);
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? retiredSchema : `${retiredSchema}_${number}`;
    if (!taken.includes(name)) return name;
  }
}

/** Drops replaced tables, but for those that somebody still reads. */
async function dropRetired({ db }: Pick<Database, "db">): Promise<void> {
  for (const name of await retiredSchemas(db)) {
    await db
      .transaction()
      .execute(async (tx) => {
        await sql`select set_config('lock_timeout', ${`${lockMs}ms`}, true)`.execute(tx);
        await dropSchemas({ db: tx }, name);
      })
      .catch((error: unknown) => {
        if (!isLockTimeout(error)) throw error;
      });
  }
}

const dropEveryMs = 60_000;

/** Drops replaced tables that were still read at their swap, until the signal. Retries while the database is unavailable. */
export async function keepDroppingRetired(
  database: Database,
  { logger, signal }: { readonly logger: Logger; readonly signal: AbortSignal },
): Promise<void> {
  while (!signal.aborted) {
    await delay(dropEveryMs, signal);
    if (signal.aborted) return;
    await dropRetired(database).catch((err: unknown) => logger.debug({ err }, "replaced tables can't be dropped now"));
  }
}

async function isLiveAhead(tx: Tx, position: Offset): Promise<boolean> {
  const { rows } = await sql<{ ahead: boolean }>`
    select live.position > ${position} as ahead
    from ${sql.table(checkpointOf(liveSchema))} live join ${sql.table(checkpointOf(shadowSchema))} shadow
      using (name, projection, epoch)`.execute(tx);
  return rows[0]?.ahead === true;
}

async function dropSchemas({ db }: Pick<Database, "db">, schema: string): Promise<void> {
  await sql`drop schema if exists ${sql.join(schemasOf(schema).map((name) => sql.id(name)))} cascade`.execute(db);
}
