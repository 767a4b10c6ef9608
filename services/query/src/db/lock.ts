import { type Kysely, sql } from "kysely";
import type { Database } from "./database.ts";
import type { Schema } from "./schema.ts";

/** Another process writes these tables. */
export class AlreadyProjectedError extends Error {
  override readonly name = "AlreadyProjectedError";
}

/**
 * Runs `use` on one connection that alone may write the tables of its schema, and gives it back when `use` is left. The
 * lock goes with the connection, so a process that dies leaves none behind.
 * @throws AlreadyProjectedError at once when another has it
 */
export async function* withTables<T>(
  { db, schema }: Database,
  use: (connection: Kysely<Schema>) => AsyncIterable<T>,
): AsyncGenerator<T, void> {
  const connection = await pinned(db);
  const lock = sql`hashtext(${`tapedeck tables ${schema}`})`;
  try {
    const { rows } = await sql<{ locked: boolean }>`select pg_try_advisory_lock(${lock}) as locked`.execute(
      connection.db,
    );
    if (rows[0]?.locked !== true) throw new AlreadyProjectedError("another query writes these tables");
    try {
      yield* use(connection.db);
    } finally {
      await sql`select pg_advisory_unlock(${lock})`.execute(connection.db).catch(() => {}); // the connection may be gone
    }
  } finally {
    connection.release();
  }
}

/** kysely lends a connection for the length of a callback only. */
async function pinned(db: Kysely<Schema>): Promise<{ readonly db: Kysely<Schema>; readonly release: () => void }> {
  const lent = Promise.withResolvers<Kysely<Schema>>();
  const done = Promise.withResolvers<void>();
  db.connection()
    .execute(async (connection) => {
      lent.resolve(connection);
      await done.promise;
    })
    .catch(lent.reject);
  return { db: await lent.promise, release: done.resolve };
}
