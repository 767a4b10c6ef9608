import { Argument, Command, Option } from "commander";
import { collectList, jsonOption, sinceOption, sourceOption, untilOption, urlOption, wholeNumber } from "../options.ts";
import type { LogsOptions } from "./run.ts";

export const logsCommand = () =>
  new Command("logs")
    .summary("show what was printed: application logs, build output, terminals")
    .description(`Shows the text of a source, by default of its newest session: application logs and build output (Skaffold), \
output of apps (rkt), output of commands (Vagrant). Colours and control characters are removed.`)
    .addArgument(
      new Argument(
        "[what]",
        "a source or a part of its name, or a loop (54, or alice/shop#54; default: the source of this folder, else the only one)",
      ),
    )
    .addOption(sourceOption())
    .option("--session <ulid>", "show this session (default: the newest of the source)")
    .addOption(new Option("--loop <loop>", "only what was printed during this loop").conflicts(["session", "follow"]))
    .addOption(new Option("--failed", "only the step that failed, of the newest failed loop").conflicts("follow"))
    .option("--artifact <name>", "only these builds and containers; repeatable", collectList)
    .option("--pod <name>", "only these pods; the beginning of a name is enough", collectList)
    .option("--app <name>", "only these apps or containers", collectList)
    .option("--job <id>", "only these jobs of a Vagrant server", collectList)
    .addOption(sinceOption())
    .addOption(untilOption())
    .addOption(new Option("-n, --tail <n>", "show the last n lines").argParser(wholeNumber))
    .addOption(new Option("--last <n>").argParser(wholeNumber).hideHelp())
    .addOption(new Option("-f, --follow", "follow new output").conflicts("until"))
    .option("-t, --timestamps", "begin each line with its time")
    .addOption(jsonOption())
    .addOption(urlOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck logs alice/shop -n 50 -f
  tapedeck logs alice/shop --failed
  tapedeck logs alice/shop --artifact web --since 10m
  tapedeck logs node-1/host --app web`,
    )
    .action(async (what: string | undefined, options: LogsOptions) => (await import("./run.ts")).logs(what, options));
