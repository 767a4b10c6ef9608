import { Command } from "commander";
import { dataOption, elsewhereOption, withPlace } from "../options.ts";
import type { BackupOptions } from "./run.ts";

export const backupCommand = () =>
  new Command("backup")
    .summary("back up the log to a folder while Tapedeck runs")
    .description(`Copies the log and the hashes of tokens, as of now, to a new folder while Tapedeck runs on this machine. The \
tables are rebuilt from the log. With --url, or after \`tapedeck login\`, it copies that of another server, \
which needs a token created with --all-workspaces. With --data, and settings with a nats.url, it copies the log \
in that NATS. The format is that of \`nats stream backup\`.`)
    .argument("<folder>", "a new or empty folder")
    .addOption(elsewhereOption())
    .addOption(dataOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck backup /var/backups/tapedeck-2026-11-21`,
    )
    .action(async (folder: string, options: BackupOptions, command: Command) =>
      (await import("./run.ts")).backUp(folder, withPlace(options, command)),
    );
