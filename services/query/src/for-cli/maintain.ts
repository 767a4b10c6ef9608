import { type Rebuild, rebuild as rebuildViews } from "../projecting/rebuild.ts";
import { type ViewOptions, views } from "../views/views.ts";

// For commands that work on the database of this machine, beside query: `rebuild`, `restore`, `new-epoch`, `sql-role`,
// and the demo of `up`, which forgets what is old.
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
export { forgetSessions } from "../projecting/forget-sessions.ts";
export { foreignKeysToTables, forgetForeignTables } from "../projecting/forget-tables.ts";
export { sumBuildDays } from "../projecting/sum-build-days.ts";

/** Builds all tables again, as `rebuildViews` does, with the views that query has under these options. */
export function rebuild({ textRows, ...options }: Omit<Rebuild, "views"> & ViewOptions): Promise<boolean> {
  return rebuildViews({ ...options, views: views({ textRows }) });
}
