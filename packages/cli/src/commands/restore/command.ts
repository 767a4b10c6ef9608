import { Command } from "commander";
import { dataOption } from "../options.ts";
import type { RestoreOptions } from "./run.ts";

export const restoreCommand = () =>
  new Command("restore")
    .summary("bring a log back from a backup")
    .description(
      `Brings the log back from a folder that \`tapedeck backup\` or \`nats stream backup\` has made, while Tapedeck is \
stopped: to this machine's, or to the NATS of yours that the settings name (nats.url). Positions that clients keep stay \
valid as far as the backup goes; later ones are refused (position_foreign), because other events will stand there. Tokens \
come back as well, but none that is known to be revoked.`,
    )
    .argument("<folder>", "with the backup")
    .addOption(dataOption())
    .option("--replace", "in place of the log that is there, which is kept as a backup")
    .option("--no-tokens", "leave the tokens as they are")
    .addHelpText(
      "after",
      `
Example:
  tapedeck restore /var/backups/tapedeck-2026-11-21 --replace`,
    )
    .action(async (folder: string, options: RestoreOptions) => (await import("./run.ts")).restore(folder, options));
