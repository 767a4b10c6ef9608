import { Argument, Command } from "commander";
import { sourceOption, urlOption } from "../options.ts";
import type { OpenOptions } from "./run.ts";

export const openCommand = () =>
  new Command("open")
    .summary("open the page in a browser")
    .description(
      `Opens the page of the Tapedeck server in a browser: at the source of this folder, or at what is named. Also prints the address.`,
    )
    .addArgument(new Argument("[what]", "a source or a part of its name, a loop (54, or alice/shop#54), or a session"))
    .addOption(sourceOption())
    .addOption(urlOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck open
  tapedeck open alice/shop
  tapedeck open alice/shop#54`,
    )
    .action(async (what: string | undefined, options: OpenOptions) => (await import("./run.ts")).open(what, options));
