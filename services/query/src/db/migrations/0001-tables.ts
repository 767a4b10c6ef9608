import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";
import { buildTables, buildTriggers } from "./0001-tables/builds.ts";
import { logTables } from "./0001-tables/log.ts";
import { loopTables, loopTriggers } from "./0001-tables/loops.ts";
import { operationTables } from "./0001-tables/operations.ts";
import { positionFunctions } from "./0001-tables/positions.ts";
import { rktTables } from "./0001-tables/rkt.ts";
import { setAsideTables } from "./0001-tables/set-aside.ts";
import { skaffoldTables } from "./0001-tables/skaffold.ts";
import { stateTables } from "./0001-tables/states.ts";
import { vagrantTables } from "./0001-tables/vagrant.ts";
import { views } from "./0001-tables/views.ts";

/** All tables and views. Their names are unqualified: the connection's search_path names the schema being built. */
export const tables: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

const statements = [
  ...logTables,
  ...positionFunctions,
  ...setAsideTables,
  ...stateTables,
  ...operationTables,
  ...loopTables,
  ...loopTriggers(),
  ...buildTables,
  ...buildTriggers(),
  ...skaffoldTables,
  ...rktTables,
  ...vagrantTables,
  ...views,
];
