import { Command, Option } from "commander";
import { collectList, jsonOption, sinceOption, sourceOption, untilOption, urlOption, wholeNumber } from "../options.ts";
import type { LogsOptions } from "./run.ts";

export const logsCommand = () =>
  new Command("logs")
    .summary("show what was printed: application logs, build output, terminals")
    .description(`Shows the text of a source, by default of its newest session: application logs and build output (Skaffold), \
output of apps (rkt), output of commands (Vagrant). Colours and control characters are removed.`)
    .addOption(sourceOption())
    .option("--session <ulid>", "show this session (default: the newest of the source)")
    .option("--artifact <name>", "only these builds and containers; repeatable", collectList)
    .option("--pod <name>", "only these pods; the beginning of a name is enough", collectList)
    .option("--app <name>", "only these apps or containers", collectList)
    .option("--job <id>", "only these jobs of a Vagrant server", collectList)
    .addOption(sinceOption())
    .addOption(untilOption())
    .option("-n, --last <n>", "show the last n lines", wholeNumber)
    .addOption(new Option("-f, --follow", "follow new output").conflicts("until"))
    .addOption(jsonOption())
    .addOption(urlOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck logs -s alice/shop -n 50 -f
  tapedeck logs -s alice/shop --artifact web --since 10m
  tapedeck logs -s node-1/host --app web`,
    )
    .action(async (options: LogsOptions) => (await import("./run.ts")).logs(options));
