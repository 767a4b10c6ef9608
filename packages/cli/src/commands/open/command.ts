import { Command } from "commander";
import { sourceOption, urlOption } from "../options.ts";
import type { OpenOptions } from "./run.ts";

export const openCommand = () =>
  new Command("open")
    .summary("open the page in a browser")
    .description(
      `Opens the page of the Tapedeck server in a browser: what happens now, with the state of the source beside it. Prints the \
address, also where there is no browser.`,
    )
    .addOption(sourceOption())
    .addOption(urlOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck open
  tapedeck open -s alice/shop`,
    )
    .action(async (options: OpenOptions) => (await import("./run.ts")).open(options));
