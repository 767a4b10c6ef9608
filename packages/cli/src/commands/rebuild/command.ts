import { Command } from "commander";
import { dataOption, elsewhereOption, withPlace } from "../options.ts";
import type { RebuildOptions } from "./run.ts";

export const rebuildCommand = () =>
  new Command("rebuild")
    .summary("rebuild the tables from the log")
    .description(`Rebuilds all tables from the log, while the old ones keep answering. Works on this machine; with --url, or after \
\`tapedeck login\`, elsewhere with a token created with --all-workspaces.`)
    .addOption(elsewhereOption())
    .addOption(dataOption())
    .option("--workspace <name>", "only the tables of this workspace; on the server's machine")
    .action(async (options: RebuildOptions, command: Command) =>
      (await import("./run.ts")).rebuildTables(withPlace(options, command)),
    );
