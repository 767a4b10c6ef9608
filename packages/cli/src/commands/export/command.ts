import { Command } from "commander";
import { sinceOption, sourceOption, untilOption, urlOption } from "../options.ts";
import type { ExportOptions } from "./run.ts";

export const exportCommand = () =>
  new Command("export")
    .summary("export sessions to a file")
    .description(`Writes sessions to one file with everything that was recorded: a line of JSON for each event, with the \
upstream's own bytes, and a checksum. \`tapedeck import\` records them elsewhere. Secrets stay masked. A running \
session is exported up to now.`)
    .argument("[session...]", "sessions of one source (see `tapedeck sessions`); default: the newest one")
    .addOption(urlOption())
    .addOption(sourceOption())
    .addOption(sinceOption())
    .addOption(untilOption())
    .option("-o, --output <file>", "file to write; compressed if its name ends in .gz (default: standard output)")
    .option("--html", "write one session as a page that a browser shows without a Tapedeck server, for bug reports")
    .addHelpText(
      "after",
      `
Example:
  tapedeck export -s alice/shop -o shop.tapedeck.gz
  tapedeck export -s alice/shop --since yesterday -o shop.tapedeck.gz
  tapedeck export --html -s alice/shop -o bug.html
  tapedeck export 01KE3M9Z6Q4W8T2V5X7Y9A1B3C | jq 'select(.outcome == "failed") | .summary'`,
    )
    .action(async (sessions: string[], { html, ...options }: ExportOptions & { readonly html?: boolean }) => {
      if (html) await (await import("./html/run.ts")).exportPage(sessions, options);
      else await (await import("./run.ts")).exportSessions(sessions, options);
    });
