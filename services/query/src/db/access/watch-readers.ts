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
 * own timeouts (`set statement_timeout = 0`). Runs until the signal and retries while the database is unavailable.
 */
export async function watchReaders({ database, limits, logger, signal }: WatchReaders): Promise<void> {
  const everyMs = Math.min(5_000, limits.statementMs, limits.idleTransactionMs);
  let lastReason = "";
  while (!signal.aborted) {
    try {
      for (const ended of await endOverdue(database, limits)) {
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
    await delay(everyMs, signal);
  }
}

type Ended = { readonly login: string; readonly what: "statement" | "transaction" };

/** Ends the whole connection, because a statement can catch its cancellation and continue. */
async function endOverdue(database: Database, limits: ReaderLimits): Promise<readonly Ended[]> {
  const { db } = database;
  const roles = [analyst, ...(await logins(database)).map(({ login }) => login)];
  await watchable(database, roles);
  const passed = (column: string, ms: number) =>
    sql`clock_timestamp() - ${sql.ref(column)} > ${ms + graceMs} * interval '1 millisecond'`;
  const { rows } = await sql<Ended & { readonly done: boolean }>`
    select usename as login, what, pg_terminate_backend(pid) as done
    from (
      select pid, usename, case
        when state !~ '^idle' and ${passed("query_start", limits.statementMs)} then 'statement'
        when state ~ '^idle in' and ${passed("state_change", limits.idleTransactionMs)} then 'transaction'
        when ${passed("xact_start", limits.transactionMs)} then 'transaction'
      end as what
      from pg_stat_activity
      where datname = current_database() and usename = any(${roles}) and backend_type = 'client backend'
    )
    where what is not null`.execute(db);
  return rows.filter(({ done }) => done);
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
