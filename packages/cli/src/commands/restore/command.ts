import { Command } from "commander";
import { dataOption } from "../options.ts";
import type { RestoreOptions } from "./run.ts";

export const restoreCommand = () =>
  new Command("restore")
    .summary("restore logs from a backup")
    .description(`Restores the logs of workspaces from a folder that \`tapedeck backup\` or \`nats stream backup\` wrote, while Tapedeck is \
stopped: on this machine, or in the NATS of the settings (nats.url). Positions stay valid up to the end of the \
backup; later ones are refused (position_foreign). Tokens are restored too, except those known to be revoked. \
Sessions that were erased after the backup come back: erase them again.`)
    .argument("<folder>", "folder of the backup")
    .addOption(dataOption())
    .option("--workspace <name>", "restore this workspace only")
    .option("--replace", "replace existing logs, which are kept as a backup")
    .option("--no-tokens", "don't restore tokens")
    .addHelpText(
      "after",
      `
Example:
  tapedeck restore /var/backups/tapedeck-2026-11-21 --replace`,
    )
    .action(async (folder: string, options: RestoreOptions) => (await import("./run.ts")).restore(folder, options));
