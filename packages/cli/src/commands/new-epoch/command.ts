import { Command } from "commander";
import { dataOption } from "../options.ts";
import type { NewEpochOptions } from "./run.ts";

export const newEpochCommand = () =>
  new Command("new-epoch")
    .summary("go on with a log that has lost its end")
    .description(
      `Goes on with what is left of a log whose end was lost, where there is no backup to restore. No position is given \
twice: what is recorded from now on stands at positions of a new epoch, and those of the lost end are refused \
(position_foreign). Tapedeck is stopped meanwhile.`,
    )
    .option("--yes", "yes, what was lost is lost")
    .addOption(dataOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck new-epoch --yes`,
    )
    .action(async (options: NewEpochOptions) => (await import("./run.ts")).startNewEpoch(options));
