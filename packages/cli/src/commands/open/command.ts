import { Command } from "commander";
import { sourceOption, urlOption } from "../options.ts";
import type { OpenOptions } from "./run.ts";

export const openCommand = () =>
  new Command("open")
    .summary("open the page in a browser")
    .description(
      `Opens the page of the Tapedeck server in a browser, at the source if one is named. Also prints the address.`,
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
