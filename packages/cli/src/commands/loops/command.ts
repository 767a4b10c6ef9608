import { Command } from "commander";
import { collectList, jsonOption, sinceOption, sourceOption, untilOption, urlOption, wholeNumber } from "../options.ts";
import type { LoopsOptions } from "./run.ts";

export const loopsCommand = () =>
  new Command("loops")
    .summary("list the finished dev loops, newest first")
    .description(`Lists the finished dev loops, newest first: how each ended, the developer's wait, and what failed first. \
\`tapedeck why <loop>\` shows more.`)
    .addOption(sourceOption())
    .option("--outcome <outcome>", "only succeeded, failed, canceled or unknown; repeatable", collectList)
    .addOption(sinceOption())
    .addOption(untilOption())
    .option("--limit <n>", "show at most n loops", wholeNumber, 20)
    .addOption(jsonOption())
    .addOption(urlOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck loops -s alice/shop
  tapedeck loops --outcome failed --since yesterday`,
    )
    .action(async (options: LoopsOptions) => (await import("./run.ts")).loops(options));
