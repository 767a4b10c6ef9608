import type { Logger } from "@tapedeck/shared/service/logger";
import { delay } from "@tapedeck/shared/sync/delay";
import { sql } from "kysely";
import { lockCheckpoint } from "../db/checkpoint.ts";
import type { Database } from "../db/database.ts";
import { noSwapUntilCommit } from "../db/read.ts";

export type KeepBuildDays = {
  readonly database: Database;
  readonly logger: Logger;
  readonly signal: AbortSignal;
};

const everyMs = 60_000;

/** Sums up the days whose builds have changed, until the signal. Retries while the database is unavailable or has no tables yet. */
export async function keepBuildDays({ database, logger, signal }: KeepBuildDays): Promise<void> {
  while (!signal.aborted) {
    await delay(everyMs, signal);
    try {
      await sumBuildDays(database, { signal });
    } catch (error) {
      logger.warn({ err: error }, "the builds per day can't be summed up now");
    }
  }
}

export type SumBuildDays = {
  /** The first day that is left out, "2026-11-20"; by default today, whose builds still change. */
  readonly before?: string;
  readonly signal?: AbortSignal;
};

/**
 * Keeps what build_times_daily says of the days whose builds have changed, so that it need not count them when asked. Each
 * day is one transaction, during which no batch is applied. Returns how many days were summed up.
 */
export async function sumBuildDays(database: Database, { before, signal }: SumBuildDays = {}): Promise<number> {
  const { db } = database;
  const end = before === undefined ? sql`(now() at time zone 'UTC')::date` : sql`${before}::date`;
  const { rows } = await sql<ChangedDay>`
    select workspace, day::text from changed_build_days where day < ${end} order by day desc, workspace`.execute(db);
  let summed = 0;
  for (const day of rows) {
    if (signal?.aborted === true) break;
    if (await sumBuildDay(database, day)) summed += 1;
  }
  return summed;
}

type ChangedDay = { readonly workspace: string; readonly day: string };

/** Every writer of a workspace's builds holds its checkpoint, so none is changed between the count and the end of the mark. */
async function sumBuildDay({ db }: Database, { workspace, day }: ChangedDay): Promise<boolean> {
  return db.transaction().execute(async (tx) => {
    await noSwapUntilCommit(tx);
    if ((await lockCheckpoint(tx, workspace)) === undefined) return false;
    const { rows } = await sql`
      select from changed_build_days where workspace = ${workspace} and day = ${day}::date`.execute(tx);
    if (rows.length === 0) return false;
    await sql`
      insert into build_days (workspace, developer, project, artifact, day, builds, failed, cached, canceled, unknown, p50_ms,
        p90_ms, p99_ms)
      select workspace, developer, project, artifact, day, builds, failed, cached, canceled, unknown, p50_ms, p90_ms, p99_ms
      from build_times_daily where workspace = ${workspace} and day = ${day}::date`.execute(tx);
    await sql`delete from changed_build_days where workspace = ${workspace} and day = ${day}::date`.execute(tx);
    return true;
  });
}
