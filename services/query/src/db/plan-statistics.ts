import { sql } from "kysely";
import { type Database, schemasOf } from "./database.ts";

/** Statistics are checked after the first events, and again whenever there are eight times as many. */
const firstEvents = 2_000;
const nextTimes = 8;

/**
 * Statistics by which Postgres plans queries on new tables. Its own autovacuum collects them after a minute or more, and
 * until then a query for a few rows may read a whole table. Nothing is done in a database that has them.
 */
export class PlanStatistics implements AsyncDisposable {
  readonly #database: Database;
  #events = 0;
  #next = firstEvents;
  #refreshed: Promise<void> = Promise.resolve();

  constructor(database: Database) {
    this.#database = database;
  }

  /** Counts new events. Nobody waits for the statistics. */
  wrote(events: number): void {
    this.#events += events;
    if (this.#events < this.#next) return;
    this.#next = this.#events * nextTimes;
    // A failure costs speed alone. The tables may be dropped meanwhile, as those of a rebuild that ends.
    this.#refreshed = this.#refreshed.then(() => this.#refresh(this.#events)).catch(() => {});
  }

  async #refresh(events: number): Promise<void> {
    const { db, schema } = this.#database;
    const { rows } = await sql<{ known: number }>`
      select reltuples as known from pg_class where oid = to_regclass(${`${schema}.operations`})`.execute(db);
    if (rows.some(({ known }) => known < events / nextTimes)) await analyze(this.#database);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#refreshed;
  }
}

/** Lets Postgres look at all tables of the database's schema. */
export async function analyze({ db, schema }: Database): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select oid::regclass::text as name from pg_class
    where relnamespace = any(${schemasOf(schema)}::text[]::regnamespace[]) and relkind in ('r', 'p')`.execute(db);
  await sql`analyze ${sql.join(rows.map(({ name }) => sql.raw(name)))}`.execute(db);
}
