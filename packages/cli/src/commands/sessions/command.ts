import { Command } from "commander";
import {
  collectLabel,
  jsonOption,
  sinceOption,
  sourceOption,
  untilOption,
  urlOption,
  wholeNumber,
} from "../options.ts";
import type { SessionsOptions } from "./run.ts";

export const sessionsCommand = () =>
  new Command("sessions")
    .summary("list the recorded sessions, newest first")
    .description(
      "Lists the recorded sessions, newest first: lifetimes of Skaffold processes and of Vagrant servers, data directories of rkt.",
    )
    .addOption(sourceOption())
    .option("--label <name=value>", "only those with this label; may be repeated", collectLabel)
    .addOption(sinceOption("that began since then"))
    .addOption(untilOption("that began before"))
    .option("--limit <n>", "at most so many", wholeNumber, 20)
    .addOption(jsonOption())
    .addOption(urlOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck sessions -s alice/shop --label branch=main
  tapedeck sessions --since yesterday`,
    )
    .action(async (options: SessionsOptions) => (await import("./run.ts")).sessions(options));
