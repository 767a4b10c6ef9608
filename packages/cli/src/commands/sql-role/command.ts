import { Command } from "commander";
import { dataOption, jsonOption } from "../options.ts";
import type { CreateSqlRoleOptions, SqlRoleOptions } from "./run.ts";

const createCommand = () =>
  new Command("create")
    .summary("make a login that reads one workspace, and show its password this once")
    .description(
      `Makes a login for SQL that sees the rows of one workspace, in every table and view, and writes its address with the \
password to stdout, this once. Its name says nothing of the workspace, because every login sees the names of all.`,
    )
    .requiredOption("--workspace <name>", "which workspace it reads")
    .option("-q, --quiet", "write the address and nothing else")
    .addOption(dataOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck sql-role create --workspace acme`,
    )
    .action(async (options: CreateSqlRoleOptions) => (await import("./run.ts")).createSqlRole(options));

const listCommand = () =>
  new Command("list")
    .summary("show which logins read which workspace")
    .description("Shows which logins for SQL read which workspace. Their passwords nobody can show.")
    .addOption(dataOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck sql-role list`,
    )
    .action(async (options: SqlRoleOptions) => (await import("./run.ts")).listSqlRoles(options));

const dropCommand = () =>
  new Command("drop")
    .summary("remove a login")
    .description("Removes a login for SQL of a workspace, and ends what it has open.")
    .argument("<login>", "which one (see `tapedeck sql-role list`)")
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
    .summary("make, list and drop logins for SQL that see one workspace")
    .description(
      `Makes, lists and drops logins for SQL that see one workspace each. (The analyst, whose address \`tapedeck up\` prints, \
sees all of them.) Works on the Postgres of this machine's Tapedeck, or on the one that the settings name (postgres.url).`,
    )
    .addCommand(createCommand())
    .addCommand(listCommand())
    .addCommand(dropCommand());
