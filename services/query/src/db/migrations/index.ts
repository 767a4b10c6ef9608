import type { Migration } from "kysely/migration";
import { tables } from "./0001-tables.ts";

/**
 * In the order of their names. A released migration never changes; add the next one. To replace a view makes it show again
 * what its owner sees, so a migration that does sets `security_invoker` again.
 */
export const migrations: Readonly<Record<string, Migration>> = {
  "0001-tables": tables,
};
