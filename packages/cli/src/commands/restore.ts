import { Command } from "commander";
import { dataOption } from "./options.ts";

export type RestoreOptions = { readonly data: string; readonly replace?: boolean };

export const restoreCommand = () =>
  new Command("restore")
    .summary("bring a log back from a backup")
    .description(
      `Brings the log back from a folder that \`tapedeck backup\` or \`nats stream backup\` has made, while Tapedeck of this \
machine is stopped. Positions that clients keep stay valid as far as the backup goes; later ones are refused \
(position_foreign), because other events will stand there.`,
    )
    .argument("<folder>", "with the backup")
    .addOption(dataOption())
    .option("--replace", "in place of the log that is there, which is kept as a backup")
    .addHelpText(
      "after",
      `
Example:
  tapedeck restore /var/backups/tapedeck-2026-11-21 --replace`,
    )
    .action(async (folder: string, options: RestoreOptions) =>
      (await import("../maintain/restore.ts")).restore(folder, options),
    );
