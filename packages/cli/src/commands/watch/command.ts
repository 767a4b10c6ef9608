import { Command } from "commander";
import { collectList, urlOption } from "../options.ts";
import type { WatchOptions } from "./run.ts";

export const watchCommand = () =>
  new Command("watch")
    .summary("show what every source does now, failures first")
    .description(`Shows what every source does now, failures first: the running step, the error, since when, and the last loops (✓ \
good, ✕ failed). Press q or Ctrl-C to exit. In a pipe it prints a line whenever a source starts, fails or \
recovers.`)
    .option("-s, --source <source>", "only these sources (developer/project); repeatable", collectList)
    .option("--developer <name>", "only these developers; repeatable", collectList)
    .option("--project <name>", "only these projects; repeatable", collectList)
    .addOption(urlOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck watch
  tapedeck watch --project shop
  tapedeck watch | grep --line-buffered failed`,
    )
    .action(async (options: WatchOptions) => (await import("./run.ts")).watch(options));
