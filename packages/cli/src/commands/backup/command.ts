import { Command } from "commander";
import { dataOption, elsewhereOption, withPlace } from "../options.ts";
import type { BackupOptions } from "./run.ts";

export const backupCommand = () =>
  new Command("backup")
    .summary("back up the logs to a folder while Tapedeck runs")
    .description(`Copies the logs of all workspaces and the hashes of tokens, as of now, to a new folder while Tapedeck runs on this machine. The \
tables are rebuilt from the log. With --url, or after \`tapedeck login\`, it copies those of another server, \
which needs a token created with --all-workspaces. With --data, and settings with a nats.url, it copies the logs \
in that NATS. A workspace is a folder, whose format is that of \`nats stream backup\`.`)
    .argument("<folder>", "a new or empty folder")
    .option("--workspace <name>", "back up this workspace only")
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
