import { Command } from "commander";
import { addListFilter, allOption, collectList, jsonOption, limitOption, urlOption, withSources } from "../options.ts";
import type { LoopsOptions } from "./run.ts";

export const loopsCommand = () =>
  addListFilter(new Command("loops"))
    .summary("list the finished dev loops, newest first")
    .description(`Lists the finished dev loops, newest first: how each ended, the developer's wait, and what failed first. In the folder \
of a recorded project, those of its source. \`tapedeck why <loop>\` shows more.`)
    .option("--outcome <outcome>", "only succeeded, failed, canceled or unknown; repeatable", collectList)
    .addOption(allOption())
    .addOption(limitOption(20))
    .addOption(jsonOption())
    .addOption(urlOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck loops alice/shop
  tapedeck loops --outcome failed --since yesterday
  tapedeck loops --project shop --artifact web`,
    )
    .action(async (sources: readonly string[], options: LoopsOptions) =>
      (await import("./run.ts")).loops(withSources(sources, options)),
    );
