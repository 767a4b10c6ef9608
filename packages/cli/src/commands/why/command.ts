import { Argument, Command } from "commander";
import { jsonOption, sourceOption, urlOption } from "../options.ts";
import type { WhyOptions } from "./run.ts";

export const whyCommand = () =>
  new Command("why")
    .summary("show why a loop failed, and what differs from the last good one")
    .description(`Shows what failed first in the newest failed loop of a source, with its cause and the output around it, and what \
differs from the last good loop before it, most likely explanations first. Commands of Vagrant are compared with the \
last good run of the same command.`)
    .addArgument(
      new Argument(
        "[what]",
        "a source or a part of its name, a loop (54, or alice/shop#54), or a session (default: the source of this folder, else that of the newest failure)",
      ),
    )
    .addOption(sourceOption())
    .addOption(jsonOption())
    .addOption(urlOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck why
  tapedeck why alice/shop
  tapedeck why alice/shop#54
  tapedeck why 01M7XB1CJJ74KGYJT57DM4N80H.1.14`,
    )
    .action(async (what: string | undefined, options: WhyOptions) => (await import("./run.ts")).why(what, options));
