import { Command } from "commander";
import { dataOption } from "../options.ts";
import type { UninstallOptions } from "./run.ts";

export const uninstallCommand = () =>
  new Command("uninstall")
    .summary("remove the data and caches of Tapedeck from this machine")
    .description(`Removes what Tapedeck keeps on this machine: the data folder with everything that was recorded, and the cache of \
downloaded and compiled programs. Names them with their sizes and asks first. Other files in these folders stay, and so do \
recordings that still wait to be delivered, logins and the program itself, which it says how to remove.`)
    .addOption(dataOption())
    .option("--yes", "skip the confirmation")
    .addHelpText(
      "after",
      `
Example:
  tapedeck uninstall
  tapedeck uninstall --data /srv/tapedeck --yes`,
    )
    .action(async (options: UninstallOptions) => (await import("./run.ts")).uninstall(options));
