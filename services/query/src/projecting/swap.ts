import { logStart } from "@tapedeck/shared/log/offset";
import { delay } from "@tapedeck/shared/sync/delay";
import { type Kysely, sql } from "kysely";
import { type Database, internalSchema, liveSchema, schemasOf, type Tx } from "../db/database.ts";
import { AlreadyProjectedError, takeTables } from "../db/lock.ts";
import { swapLock } from "../db/read.ts";
import type { Schema } from "../db/schema.ts";
import { keepTotals } from "../views/totals/kept-totals.ts";
import { dropDependants, isLockTimeout, readDependants, renewDependants } from "./dependants.ts";

export const shadowSchema = "tapedeck_rebuild";
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

export async function hasTables(db: Kysely<Schema>, schema: string): Promise<boolean> {
  const { rows } = await sql<{ there: boolean }>`
    select to_regclass(${checkpointOf(schema)}) is not null as there`.execute(db);
  return rows[0]?.there === true;
}

export const checkpointOf = (schema: string) => `${internalSchema(schema)}.checkpoint`;

/**
 * The materialized views that are to be filled now. Undefined when the live tables follow the same log and are ahead, or
 * the signal came: nothing was swapped.
 */
export async function swap(
  { db }: Database,
  projection: string,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  for (let attempt = 1; !signal.aborted; attempt += 1) {
    try {
      const swapped = await swapOnce(db, projection);
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
async function swapOnce(db: Kysely<Schema>, projection: string) {
  const retired = await freeName(db);
  return db.transaction().execute(async (tx) => {
    await sql`select set_config('lock_timeout', ${`${lockMs}ms`}, true)`.execute(tx);
    if (!(await hasTables(tx, liveSchema))) {
      await renameSchemas(tx, shadowSchema, liveSchema);
      return { toFill: [] };
    }
    // Checked before readers have to wait, and again when there is no writer any more.
    if (await isLiveAhead(tx, projection)) return undefined;
    await swapLock(tx);
    if (await isLiveAhead(tx, projection)) return undefined;
    // Behind the lock, although readers wait for it: before it, the live tables would be ahead again each time that it is
    // over, wherever events come often.
    await hideRemoved(tx);
    // The log no longer has what they count, and the new tables may have counted a part of a session.
    const [live, shadow] = [liveSchema, shadowSchema].map((schema) => sql.table(`${schema}.expired_builds`));
    await sql`delete from ${shadow} where (workspace, session) in (select workspace, session from ${live})`.execute(tx);
    await sql`insert into ${shadow} select * from ${live}`.execute(tx);
    await keepTotals(tx, liveSchema, shadowSchema);
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

export async function retiredSchemas(db: Kysely<Schema>): Promise<readonly string[]> {
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
export async function dropRetired({ db }: Pick<Database, "db">): Promise<void> {
  for (const name of await retiredSchemas(db)) await dropUnread({ db }, name);
}

/** Drops the tables of a rebuild that was interrupted, unless another one has continued it. */
export async function dropAbandoned(database: Database): Promise<void> {
  try {
    await using _taken = await takeTables({ ...database, schema: shadowSchema });
    await dropUnread(database, shadowSchema);
  } catch (error) {
    if (!(error instanceof AlreadyProjectedError)) throw error;
  }
}

async function dropUnread({ db }: Pick<Database, "db">, schema: string): Promise<void> {
  await db
    .transaction()
    .execute(async (tx) => {
      await sql`select set_config('lock_timeout', ${`${lockMs}ms`}, true)`.execute(tx);
      await dropSchemas({ db: tx }, schema);
    })
    .catch((error: unknown) => {
      if (!isLockTimeout(error)) throw error;
    });
}

/** Drops the tables of an interrupted rebuild that have workspaces which the live tables no longer have. */
export async function dropForsaken(database: Database): Promise<void> {
  const { db } = database;
  if (!(await hasTables(db, shadowSchema)) || !(await hasTables(db, liveSchema))) return;
  const { rows } = await sql<{ forsaken: boolean }>`
    select exists (
      select workspace, epoch from ${sql.table(checkpointOf(shadowSchema))}
      except select workspace, epoch from ${sql.table(checkpointOf(liveSchema))} where not removed) as forsaken`.execute(
    db,
  );
  if (rows[0]?.forsaken === true) await dropAbandoned(database);
}

/** Whether the live tables of any workspace have events that the new ones lack. */
async function isLiveAhead(tx: Tx, projection: string): Promise<boolean> {
  const { rows } = await sql<{ ahead: boolean }>`
    select exists (
      select from ${sql.table(checkpointOf(liveSchema))} live
      left join ${sql.table(checkpointOf(shadowSchema))} shadow using (workspace)
      where not live.removed and live.projection = ${projection} and (shadow.epoch is null or shadow.epoch = live.epoch)
        and live.position > coalesce(shadow.position, ${logStart})) as ahead`.execute(tx);
  return rows[0]?.ahead === true;
}

/** A workspace that is being removed stays hidden in the new tables. */
async function hideRemoved(tx: Tx): Promise<void> {
  await sql`
    with hidden as (
      update ${sql.table(checkpointOf(shadowSchema))} shadow set removed = true
      from ${sql.table(checkpointOf(liveSchema))} live where live.workspace = shadow.workspace and live.removed
      returning shadow.workspace)
    delete from ${sql.table(`${shadowSchema}.workspaces`)} w using hidden h where w.workspace = h.workspace`.execute(
    tx,
  );
}

export async function dropSchemas({ db }: Pick<Database, "db">, schema: string): Promise<void> {
  await sql`drop schema if exists ${sql.join(schemasOf(schema).map((name) => sql.id(name)))} cascade`.execute(db);
}
