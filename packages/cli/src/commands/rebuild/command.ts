import { Command } from "commander";
import { dataOption, elsewhereOption, withPlace } from "../options.ts";
import type { RebuildOptions } from "./run.ts";

export const rebuildCommand = () =>
  new Command("rebuild")
    .summary("rebuild the tables from the log")
    .description(`Rebuilds all tables from the log beside the live ones, which keep answering until they are replaced. Works on the \
Tapedeck server on this machine while it runs; with --url, or after \`tapedeck login\`, on another one with a token \
created with --all-workspaces.`)
    .addOption(elsewhereOption())
    .addOption(dataOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck rebuild`,
    )
    .action(async (options: RebuildOptions, command: Command) =>
      (await import("./run.ts")).rebuildTables(withPlace(options, command)),
    );
