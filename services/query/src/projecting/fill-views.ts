import type { Logger } from "@tapedeck/shared/service/logger";
import { sql } from "kysely";
import type { Database } from "../db/database.ts";

/*
 * Materialized views that others made of the tables are empty after a rebuild, until they are filled. How long that takes
 * depends on what they compute. One that is not filled says so to who reads it.
 */

export type FillViews = {
  readonly signal: AbortSignal;
  /** Learns of each view that was not filled, also because of the signal. */
  readonly onUnfilled: (view: string, error: unknown) => void;
};

/** Fills materialized views one after another. Never rejects. */
export async function fillViews(
  database: Database,
  views: readonly string[],
  { signal, onUnfilled }: FillViews,
): Promise<void> {
  for (const view of views) await fillView(database, view, signal).catch((error: unknown) => onUnfilled(view, error));
}

async function fillView(database: Database, view: string, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const client = await database.connect();
  try {
    const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
    const pid = rows[0]?.pid ?? 0;
    // Postgres does not notice a closed connection before the statement is over.
    const cancel = () => void sql`select pg_cancel_backend(${pid})`.execute(database.db).catch(() => {});
    signal.throwIfAborted();
    signal.addEventListener("abort", cancel);
    try {
      await client.query(`refresh materialized view ${view}`);
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  } finally {
    await client.end().catch(() => {});
  }
}

/** Fills views beside everything else, until it is disposed. */
export class ViewFiller implements AsyncDisposable {
  readonly #database: Database;
  readonly #logger: Pick<Logger, "warn">;
  readonly #stop = new AbortController();
  #filled = Promise.resolve();

  constructor(database: Database, logger: Pick<Logger, "warn">) {
    this.#database = database;
    this.#logger = logger;
  }

  /** Begins when the views before are filled. */
  fill(views: readonly string[]): void {
    const onUnfilled = (view: string, err: unknown) =>
      this.#logger.warn({ err, view }, "a materialized view is not filled after the rebuild: refresh it");
    const { signal } = this.#stop;
    this.#filled = this.#filled.then(() => fillViews(this.#database, views, { signal, onUnfilled }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#filled;
  }
}
