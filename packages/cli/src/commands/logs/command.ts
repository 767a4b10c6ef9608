import { Command, Option } from "commander";
import { collectList, jsonOption, sinceOption, sourceOption, untilOption, urlOption, wholeNumber } from "../options.ts";
import type { LogsOptions } from "./run.ts";

export const logsCommand = () =>
  new Command("logs")
    .summary("show what was printed: application logs, build output, terminals")
    .description(
      `Shows the text of a source: what its applications log and its builds print (Skaffold), what its apps print (rkt), what \
its commands print (Vagrant); of its newest session, unless something else is said. Without colours and control characters.`,
    )
    .addOption(sourceOption())
    .option("--session <ulid>", "of this session (default: the source's newest)")
    .option("--artifact <name>", "only of these builds and containers; may be repeated", collectList)
    .option("--pod <name>", "only of these pods; the beginning of a name is enough", collectList)
    .option("--app <name>", "only of these apps or containers", collectList)
    .option("--job <id>", "only of these jobs of a Vagrant server", collectList)
    .addOption(sinceOption("what was recorded since then"))
    .addOption(untilOption("and until then"))
    .option("-n, --last <n>", "the last n lines", wholeNumber)
    .addOption(new Option("-f, --follow", "go on with what comes").conflicts("until"))
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
