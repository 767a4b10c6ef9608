export type ServerPart = {
  /** Its name in the package of the servers. */
  readonly name: string;
  /** Path of the module below packages/cli/src. */
  readonly module: string;
  /** The async functions that the CLI calls there. */
  readonly functions: readonly string[];
};

/**
 * The commands that run the servers, or work on NATS and Postgres past the services. They are in the package of the
 * servers, and the CLI's package loads them from there (packages/cli/src/server-package.ts).
 */
export const serverParts: readonly ServerPart[] = [
  { name: "up", module: "commands/up/run.ts", functions: ["up"] },
  { name: "erase", module: "commands/erase/here.ts", functions: ["eraseHere"] },
  { name: "new-epoch", module: "commands/new-epoch/run.ts", functions: ["startNewEpoch"] },
  { name: "restore", module: "commands/restore/run.ts", functions: ["restore"] },
  {
    name: "sql-role",
    module: "commands/sql-role/run.ts",
    functions: ["createSqlRole", "listSqlRoles", "dropSqlRole"],
  },
];
