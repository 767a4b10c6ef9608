import { Command } from "commander";
import { addSourceFilter, urlOption, withSources } from "../options.ts";
import type { WatchOptions } from "./run.ts";

export const watchCommand = () =>
  addSourceFilter(new Command("watch"))
    .summary("show what every source does now, failures first")
    .description(`Shows what every source does now, failures first: the running step, the error, since when, and the last loops (✓ \
good, ✕ failed). Press q or Ctrl-C to exit. In a pipe it prints a line whenever a source starts, fails or \
recovers.`)
    .option("--notify", "also show a notice on this desktop when a loop fails, and when its source is good again")
    .addOption(urlOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck watch
  tapedeck watch --project shop
  tapedeck watch --notify
  tapedeck watch | grep --line-buffered failed`,
    )
    .action(async (sources: readonly string[], options: WatchOptions) =>
      (await import("./run.ts")).watch(withSources(sources, options)),
    );
