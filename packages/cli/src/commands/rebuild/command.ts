import { Command } from "commander";
import { dataOption, elsewhereOption } from "../options.ts";
import type { RebuildOptions } from "./run.ts";

export const rebuildCommand = () =>
  new Command("rebuild")
    .summary("make the tables anew from the log")
    .description(
      `Makes all tables anew from the log, beside the live ones, which go on answering until they are replaced. Works on the \
Tapedeck of this machine while it runs, or with --url or after a login, and a token made with --all-workspaces, on another one.`,
    )
    .addOption(elsewhereOption())
    .addOption(dataOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck rebuild`,
    )
    .action(async (options: RebuildOptions) => (await import("./run.ts")).rebuildTables(options));
