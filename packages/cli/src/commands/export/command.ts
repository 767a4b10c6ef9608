import { Command } from "commander";
import { formerly, sinceOption, sourceOption, untilOption, urlOption } from "../options.ts";
import type { ExportOptions } from "./run.ts";

export const exportCommand = () =>
  new Command("export")
    .summary("write sessions to a file")
    .description(
      `Writes sessions of any upstream to one file, with all that was recorded of them: one line of JSON for each event, the \
upstream's own bytes in it, and a checksum. \`tapedeck import\` records them elsewhere. Secrets are masked in it as they were in \
the recording. A session that still runs is exported up to now.`,
    )
    .argument("[session...]", "which ones, of one source (see `tapedeck sessions`); none: the source's newest")
    .addOption(urlOption())
    .addOption(formerly("--from", "--url"))
    .addOption(sourceOption())
    .addOption(sinceOption("the source's sessions that began since then"))
    .addOption(untilOption("and before"))
    .option("-o, --output <file>", "where to; compressed when the name ends in .gz (default: standard output)")
    .addHelpText(
      "after",
      `
Example:
  tapedeck export -s alice/shop -o shop.tapedeck.gz
  tapedeck export -s alice/shop --since yesterday -o shop.tapedeck.gz
  tapedeck export 01KE3M9Z6Q4W8T2V5X7Y9A1B3C | jq 'select(.outcome == "failed") | .summary'`,
    )
    .action(async (sessions: string[], options: ExportOptions) =>
      (await import("./run.ts")).exportSessions(sessions, options),
    );
