import { Command } from "commander";
import { dataOption, elsewhereOption, jsonOption, withPlace } from "../options.ts";
import type { EraseOptions } from "./options.ts";

export const eraseCommand = () =>
  new Command("erase")
    .summary("permanently remove a session from the log and the tables")
    .description(`Permanently removes a session from the log and the tables, for example because it contains a secret. A marker \
(session.erased) remains. From the first answer on, none of it can be read. The server then removes it piece by piece, \
without delaying recordings, and continues if this command is stopped or the server restarts: the same command shows the progress. \
Earlier backups still contain the session, and restoring one brings it back. Works on the Tapedeck \
server on this machine while it runs; with --url, or after \`tapedeck login\`, on another one with an \
admin's token.`)
    .requiredOption("--session <ulid>", "the session to erase (see `tapedeck sessions`)")
    .option("--yes", "skip the confirmation")
    .addOption(elsewhereOption())
    .addOption(dataOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck erase --session 01KE3M9Z6Q4W8T2V5X7Y9A1B3C`,
    )
    .action(async (options: EraseOptions, command: Command) =>
      (await import("./run.ts")).erase(withPlace(options, command)),
    );
