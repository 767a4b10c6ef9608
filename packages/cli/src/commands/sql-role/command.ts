import { Command } from "commander";
import { dataOption, jsonOption } from "../options.ts";
import type { CreateSqlRoleOptions, SqlRoleOptions } from "./run.ts";

const createCommand = () =>
  new Command("create")
    .summary("create a login that reads one workspace, and show its password once")
    .description(`Creates a login for SQL that sees the rows of one workspace, and prints its address with the password to stdout. \
The password can't be shown again. The login's name does not reveal the workspace, because every login can see \
the names of all.`)
    .requiredOption("--workspace <name>", "the workspace that it reads")
    .option("--developer <name>", "whose rows it sees where developers are hidden (privacy.developers); default: none")
    .option("--may-guess-names", "also where Postgres would let it guess names of other workspaces (docs/team.md#sql)")
    .option("-q, --quiet", "print only the address")
    .addOption(dataOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck sql-role create --workspace acme
  tapedeck sql-role create --workspace acme --developer alice`,
    )
    .action(async (options: CreateSqlRoleOptions) => (await import("./run.ts")).createSqlRole(options));

const listCommand = () =>
  new Command("list")
    .summary("list logins and the workspaces they read")
    .description(`Lists the logins for SQL and the workspace that each one reads. Passwords can't be shown.`)
    .addOption(dataOption())
    .addOption(jsonOption())
    .action(async (options: SqlRoleOptions) => (await import("./run.ts")).listSqlRoles(options));

const dropCommand = () =>
  new Command("drop")
    .summary("remove a login")
    .description(`Removes a login for SQL, and closes its connections.`)
    .argument("<login>", "the login to remove (see `tapedeck sql-role list`)")
    .addOption(dataOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck sql-role drop tapedeck_reader_3f0c9a1b`,
    )
    .action(async (login: string, options: SqlRoleOptions) => (await import("./run.ts")).dropSqlRole(login, options));

export const sqlRoleCommand = () =>
  new Command("sql-role")
    .summary("create, list and drop logins for SQL that see one workspace")
    .description(`Creates, lists and drops logins for SQL that see one workspace each. (The analyst, whose address \`tapedeck up\` \
prints, sees all.) Works on the Postgres of this machine, or of the settings (postgres.url).`)
    .addCommand(createCommand())
    .addCommand(listCommand())
    .addCommand(dropCommand());
