import { Command, InvalidArgumentError, Option } from "commander";
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
    .addOption(
      new Option("--parquet <dir>", "write the tables for SQL as Parquet, by day, for DuckDB and others").conflicts([
        ...["html", "output", "source", "since", "until"],
      ]),
    )
    .addOption(new Option("--from <day>", "with --parquet: the first day (UTC), such as 2026-01-31").argParser(day))
    .addOption(new Option("--to <day>", "with --parquet: the last day (default: today)").argParser(day))
    .addHelpText(
      "after",
      `
Example:
  tapedeck export -s alice/shop -o shop.tapedeck.gz
  tapedeck export -s alice/shop --since yesterday -o shop.tapedeck.gz
  tapedeck export --html -s alice/shop -o bug.html
  tapedeck export --parquet tables --from 2026-01-01 --to 2026-01-31
  tapedeck export 01KE3M9Z6Q4W8T2V5X7Y9A1B3C | jq 'select(.outcome == "failed") | .summary'`,
    )
    .action(async (sessions: string[], { html, ...options }: Options, command: Command) => {
      const { parquet, from, to = today() } = options;
      if (parquet === undefined && (from ?? options.to) !== undefined)
        command.error("error: --from and --to are days of --parquet: sessions have --since and --until");
      if (parquet !== undefined) {
        if (parquet.startsWith("-")) command.error("error: --parquet needs a folder");
        if (sessions.length > 0) command.error("error: --parquet exports tables, and no single sessions");
        if (from === undefined) return command.error("error: --parquet needs --from, the first day");
        if (options.to === undefined && from > to)
          return command.error(`error: --from (${from}) is after today (${to})`);
        await (await import("./parquet/run.ts")).exportTables({ ...options, parquet, from, to });
      } else if (html) await (await import("./html/run.ts")).exportPage(sessions, options);
      else await (await import("./run.ts")).exportSessions(sessions, options);
    });

type Options = ExportOptions & {
  readonly html?: boolean;
  readonly parquet?: string;
  readonly from?: string;
  readonly to?: string;
};

function day(text: string): string {
  const ms = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(text) : Number.NaN;
  // JavaScript takes 31 February for a day in March.
  if (!Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text)) return text;
  throw new InvalidArgumentError("Expected a day, such as 2026-01-31.");
}

const today = () => new Date().toISOString().slice(0, 10);
