import { Command } from "commander";
import { dataOption } from "./options.ts";

export type BackupOptions = { readonly data: string };

export const backupCommand = () =>
  new Command("backup")
    .summary("copy the log to a folder, while it is written")
    .description(
      `Copies the log, up to a moment, to a new folder, while Tapedeck of this machine runs. The log is all there is to \
keep: tables are made of it. Tokens are not in it. The files are those of \`nats stream backup\`.`,
    )
    .argument("<folder>", "a new one")
    .addOption(dataOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck backup /var/backups/tapedeck-2026-11-21`,
    )
    .action(async (folder: string, options: BackupOptions) =>
      (await import("../maintain/backup.ts")).backUp(folder, options),
    );
