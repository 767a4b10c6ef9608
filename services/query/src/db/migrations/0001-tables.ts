import { buildMonths, buildTables, buildTriggers, expiredBuilds } from "./0001-tables/builds.ts";
import { historyTables, textIndex } from "./0001-tables/history.ts";
import { logTables, positionTables, workspaceTable } from "./0001-tables/log.ts";
import { loopTables, loopTriggers } from "./0001-tables/loops.ts";
import { operationTables } from "./0001-tables/operations.ts";
import { positionFunctions, positionText } from "./0001-tables/positions.ts";
import { rktTables } from "./0001-tables/rkt.ts";
import { setAsideTables } from "./0001-tables/set-aside.ts";
import { skaffoldTables } from "./0001-tables/skaffold.ts";
import { stateTables } from "./0001-tables/states.ts";
import { totalTables } from "./0001-tables/totals.ts";
import { vagrantJobTables, vagrantTables } from "./0001-tables/vagrant.ts";
import { views } from "./0001-tables/views.ts";
import { migrationOf } from "./steps.ts";

/** All tables and views. */
export const tables = migrationOf([
  {
    isInternal: true,
    statements: [
      ...positionTables,
      ...positionFunctions,
      ...stateTables,
      ...buildMonths,
      ...totalTables,
      ...vagrantJobTables,
      ...historyTables,
    ],
  },
  {
    isInternal: false,
    statements: [
      workspaceTable,
      positionText,
      ...logTables,
      textIndex,
      ...setAsideTables,
      ...operationTables,
      ...loopTables,
      ...buildTables,
      expiredBuilds,
      ...skaffoldTables,
      ...rktTables,
      ...vagrantTables,
    ],
  },
  { isInternal: true, statements: [...loopTriggers(), ...buildTriggers()] },
  { isInternal: false, statements: views },
]);
