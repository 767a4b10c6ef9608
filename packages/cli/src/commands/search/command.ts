import { Command } from "commander";
import { addListFlags, collectList, jsonOption, limitOption, urlOption } from "../options.ts";
import type { SearchCommandOptions } from "./run.ts";

export const searchCommand = () =>
  addListFlags(new Command("search"))
    .summary("find a text in all that was recorded, or list it")
    .description(`Finds a text in causes, artifacts, labels, names and the output of failed steps (all output with \
query.textRows), and prints the first line that has it: of loops, commands, jobs, pods and sessions of everybody, the newest \
first. Without a text it lists them.`)
    .argument("[text...]", "the text; three letters or digits in a row at least")
    .option("--kind <kind>", "only loop, command, job, pod or session; repeatable", collectList)
    .option("--outcome <outcome>", "only succeeded, failed, canceled or unknown; repeatable", collectList)
    .option("--reason <reason>", 'only this class of causes, such as "compile error"; repeatable', collectList)
    .addOption(limitOption(20))
    .addOption(jsonOption())
    .addOption(urlOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck search no such file
  tapedeck search Deploymint --developer alice --since yesterday
  tapedeck search --outcome failed --reason timeout`,
    )
    .action(async (words: readonly string[], options: SearchCommandOptions) =>
      (await import("./run.ts")).search(words.join(" "), options),
    );
