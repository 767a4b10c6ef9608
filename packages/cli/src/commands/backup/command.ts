import { Command } from "commander";
import { dataOption, elsewhereOption } from "../options.ts";
import type { BackupOptions } from "./run.ts";

export const backupCommand = () =>
  new Command("backup")
    .summary("copy the log to a folder, while it is written")
    .description(
      `Copies the log, up to a moment, to a new folder, while Tapedeck runs: the one of this machine, or \
with --url or after a login another one, for which the token is one made with --all-workspaces. The log is all there is to \
keep: tables are made of it. Tokens are in it as hashes, by which nobody gets in. The files are those of \`nats stream backup\`.`,
    )
    .argument("<folder>", "a new one")
    .addOption(elsewhereOption())
    .addOption(dataOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck backup /var/backups/tapedeck-2026-11-21`,
    )
    .action(async (folder: string, options: BackupOptions) => (await import("./run.ts")).backUp(folder, options));
