import { Command } from "commander";
import { dataOption, jsonOption, urlOption } from "../options.ts";
import type { StatusOptions } from "./run.ts";

export const statusCommand = () =>
  new Command("status")
    .summary("show what is recorded, and whether it is well")
    .description(
      "Shows what is recorded: who is connected or waited for and where, the last event, gaps, what waits in the spill.",
    )
    .addOption(jsonOption())
    .addOption(urlOption())
    .addOption(dataOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck status`,
    )
    .action(async (options: StatusOptions) => (await import("./run.ts")).status(options));
