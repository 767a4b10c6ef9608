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
    .description(`Lists the recorded sessions, the last recorded first: a new import is at the top. A session is one lifetime of a \
Skaffold process or a Vagrant server, or one data directory of rkt.`)
    .addOption(sourceOption())
    .option("--label <name=value>", "only sessions with this label; repeatable", collectLabel)
    .addOption(sinceOption())
    .addOption(untilOption())
    .option("--limit <n>", "show at most n sessions", wholeNumber, 20)
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
