import { Command } from "commander";
import { dataOption } from "../options.ts";
import type { NewEpochOptions } from "./run.ts";

export const newEpochCommand = () =>
  new Command("new-epoch")
    .summary("continue a log that has lost its end")
    .description(`Continues with what is left of a log whose end was lost, if there is no backup. New events get positions of a \
new epoch, and positions of the lost end are refused (position_foreign). Stop Tapedeck first.`)
    .option("--workspace <name>", "the workspace of the log (default: that of the settings)")
    .option("--yes", "confirm that the lost end stays lost")
    .addOption(dataOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck new-epoch --yes`,
    )
    .action(async (options: NewEpochOptions) => (await import("./run.ts")).startNewEpoch(options));
