import { type Kysely, sql } from "kysely";
import type { Schema } from "./schema.ts";

/**
 * The schema of what belongs to the database and not to one set of tables: locks, and which login reads which workspace.
 * It outlives rebuilds, and no other role may touch its tables.
 */
export const privateSchema = "tapedeck_private";

export const privateTable = (name: string) => sql.table(`${privateSchema}.${name}`);

/** SQLSTATEs of an object that another process created at the same time. */
const raced = new Set(["23505", "42P06", "42P07", "42710", "42723"]);

/** Runs statements that create missing objects, and retries when another process creates the same ones. */
export async function makeOnce(db: Kysely<Schema>, make: (db: Kysely<Schema>) => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await make(db);
    } catch (error) {
      if (attempt === 5 || !(error instanceof Error && "code" in error && isRace(error))) throw error;
    }
  }
}

function isRace({ code, message }: Error & { readonly code?: unknown }): boolean {
  // Several databases share the roles: "tuple concurrently updated".
  return raced.has(String(code)) || (code === "XX000" && message.includes("concurrently"));
}
