import { namePart } from "@tapedeck/shared/source";
import { Command } from "commander";
import { dataOption, elsewhereOption, jsonOption, withPlace } from "../options.ts";
import type { EraseOptions } from "./options.ts";

export const eraseCommand = () =>
  new Command("erase")
    .summary("permanently remove a session, or all of a developer")
    .description(`Permanently removes a session from the log and the tables, for example because it contains a secret. Only a \
marker (session.erased) remains. Nothing of it can be read from the first answer on.

With --developer, removes all sessions and sources of a developer, the oldest first, and the name from the audit log. Refused \
while one of them is recorded.

The server removes it piece by piece, also if this command is stopped; the same command shows the progress. Earlier backups \
still contain it, and earlier exports, which are listed.`)
    .option("--session <ulid>", "the session to erase (see `tapedeck sessions`)")
    .option("--developer <name>", "the developer to erase", namePart)
    .option("--yes", "skip the confirmation")
    .addOption(elsewhereOption())
    .addOption(dataOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck erase --session 01KE3M9Z6Q4W8T2V5X7Y9A1B3C
  tapedeck erase --developer alice`,
    )
    .action(async (options: EraseOptions, command: Command) =>
      (await import("./run.ts")).erase(withPlace(options, command)),
    );
