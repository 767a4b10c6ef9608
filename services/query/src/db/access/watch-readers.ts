import type { Logger } from "@tapedeck/shared/service/logger";
import { delay } from "@tapedeck/shared/sync/delay";
import { sql } from "kysely";
import type { Database } from "../database.ts";
import type { ReaderLimits } from "./limits.ts";
import { isSuperuser } from "./public-rights.ts";
import { allowed, analyst, run } from "./roles.ts";
import { logins } from "./workspace-logins.ts";

export type WatchReaders = {
  readonly database: Database;
  readonly limits: ReaderLimits;
  readonly logger: Logger;
  readonly signal: AbortSignal;
};

/** Postgres itself ends a login that did not lift its limits before this watch does. */
const graceMs = 1_000;

/**
 * Ends connections of readers whose statement or transaction exceeds its limit, because Postgres lets every role lift its
 * own timeouts (`set statement_timeout = 0`). Runs until the signal and retries while the database is unavailable. Checks
 * again when the next one can be overdue: none that begins after a check is, before the time of its limit has passed.
 */
export async function watchReaders({ database, limits, logger, signal }: WatchReaders): Promise<void> {
  let lastReason = "";
  while (!signal.aborted) {
    let waitMs = minWaitMs(limits);
    try {
      const { ended: overdue, nextMs } = await endOverdue(database, limits);
      waitMs = nextMs;
      for (const ended of overdue) {
        logger.warn(
          { audit: "sql ended", ...ended },
          `a connection of ${ended.login} was ended: its ${ended.what} took too long`,
        );
      }
      lastReason = "";
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (reason !== lastReason) logger.debug({ err: error }, "the connections of readers can't be checked now");
      lastReason = reason;
    }
    await delay(waitMs, signal);
  }
}

const minWaitMs = ({ statementMs, idleTransactionMs }: ReaderLimits) => Math.min(5_000, statementMs, idleTransactionMs);

type Ended = { readonly login: string; readonly what: "statement" | "transaction" };

/**
 * Ends the whole connection, because a statement can catch its cancellation and continue. `nextMs`: the time until
 * the next check, which finds another one overdue by at most 5 s.
 */
export async function endOverdue(
  database: Database,
  limits: ReaderLimits,
): Promise<{ readonly ended: readonly Ended[]; readonly nextMs: number }> {
  const { db } = database;
  const roles = [analyst, ...(await logins(database)).map(({ login }) => login)];
  await watchable(database, roles);
  const leftMs = (column: string, ms: number) =>
    sql`${ms + graceMs} - 1000 * extract(epoch from clock_timestamp() - ${sql.ref(column)})`;
  const { rows } = await sql<Ended & { readonly leftMs: number; readonly done: boolean | null }>`
    select usename as login, what, left_ms::float8 as "leftMs", case when left_ms < 0 then pg_terminate_backend(pid) end as done
    from (
      select pid, usename, what, left_ms, row_number() over (partition by pid order by left_ms) as number
      from pg_stat_activity, lateral (values
        ('statement', case when state !~ '^idle' then ${leftMs("query_start", limits.statementMs)} end),
        ('transaction', case when state ~ '^idle in' then ${leftMs("state_change", limits.idleTransactionMs)} end),
        ('transaction', ${leftMs("xact_start", limits.transactionMs)})) as limits (what, left_ms)
      where datname = current_database() and usename = any(${roles}) and backend_type = 'client backend'
    )
    where number = 1 and left_ms is not null`.execute(db);
  const { statementMs, idleTransactionMs, transactionMs } = limits;
  // Connections that begin something after this check are overdue no sooner.
  const soonestMs = Math.min(statementMs, idleTransactionMs, transactionMs) + graceMs;
  const lefts = rows.flatMap(({ leftMs, done }) => (done ? [] : [leftMs]));
  return {
    ended: rows.flatMap(({ login, what, done }) => (done ? [{ login, what }] : [])),
    nextMs: Math.max(minWaitMs(limits), Math.min(soonestMs, ...lefts)),
  };
}

/** An owner without superuser rights sees and ends only connections of roles that it is a member of. */
async function watchable({ db }: Database, roles: readonly string[]): Promise<void> {
  if (await isSuperuser(db)) return;
  const { rows } = await sql<{ role: string }>`
    select rolname::text as role from pg_roles
    where rolname = any(${[...roles]}) and not pg_has_role(current_user, oid, 'usage')`.execute(db);
  for (const { role } of rows) {
    const inheriting = await allowed(() => run(db, sql`grant ${sql.id(role)} to current_user with inherit true`));
    if (!inheriting) return;
  }
}
