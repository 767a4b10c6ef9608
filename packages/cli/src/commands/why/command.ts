import { Command } from "commander";
import { jsonOption, sourceOption, urlOption } from "../options.ts";
import type { WhyOptions } from "./run.ts";

export const whyCommand = () =>
  new Command("why")
    .summary("show why a loop failed, and what differs from the last good one")
    .description(`Shows what failed first in the newest failed loop of a source, and what differs from the last good loop before \
it, most likely explanations first. Commands of Vagrant are compared with the last good run of the same command.`)
    .argument("[loop]", "this loop, or the newest failed one of this session")
    .addOption(sourceOption())
    .addOption(jsonOption())
    .addOption(urlOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck why -s alice/shop
  tapedeck why 01M7XB1CJJ74KGYJT57DM4N80H.1.14`,
    )
    .action(async (loop: string | undefined, options: WhyOptions) => (await import("./run.ts")).why(loop, options));
