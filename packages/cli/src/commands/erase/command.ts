import { Command } from "commander";
import { dataOption, elsewhereOption, jsonOption } from "../options.ts";
import type { EraseOptions } from "./run.ts";

export const eraseCommand = () =>
  new Command("erase")
    .summary("remove a session from log and tables, for good")
    .description(
      `Removes a session from log and tables, for good: a secret got into it, say. A mark (session.erased) stays. Works on \
the Tapedeck of this machine while it runs, or with --url or after a login, and an admin's token, on another one.`,
    )
    .requiredOption("--session <ulid>", "which one (see `tapedeck sessions`)")
    .option("--yes", "don't ask")
    .addOption(elsewhereOption())
    .addOption(dataOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck erase --session 01KE3M9Z6Q4W8T2V5X7Y9A1B3C`,
    )
    .action(async (options: EraseOptions) => (await import("./run.ts")).erase(options));
