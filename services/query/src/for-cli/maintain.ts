// For commands that work on the database of this machine, beside query: `restore`, `new-epoch`, `sql-role`, and the demo
// of `up`, which forgets what is old.
export {
  createLogin,
  dropLogin,
  isRecorded,
  LeakyPlansError,
  logins,
  RolesRefusedError,
  type WorkspaceLogin,
} from "../db/access/workspace-logins.ts";
export { type Database, openDatabase } from "../db/database.ts";
export { forgetSessions } from "../projecting/forget/sessions.ts";
export { foreignKeysToTables, forgetForeignTables } from "../projecting/forget/tables.ts";
export { sumBuildDays } from "../projecting/sum-build-days.ts";
