import { Command, Option } from "commander";
import {
  addListFlags,
  collectList,
  jsonOption,
  sourcesArgument,
  urlOption,
  wholeNumber,
  withSources,
} from "../options.ts";
import { type StatsKind, statsKinds } from "./kinds.ts";
import type { StatsOptions } from "./run.ts";

function kindCommand(kind: StatsKind): Command {
  const { name, groups } = kind;
  return addListFlags(new Command(name).addArgument(sourcesArgument()), kind)
    .summary(kind.summary)
    .description(kind.description)
    .option(
      "-g, --group <columns>",
      `group by any of ${groups.join(", ")}, label.<name>`,
      (text) => collectList(text),
      [...kind.group],
    )
    .option("--zone <zone>", "time zone of hours, days and weeks, such as Europe/Berlin (default: UTC)")
    .addOption(new Option("-n, --limit <n>", "show at most n").argParser(wholeNumber))
    .addOption(jsonOption())
    .addOption(urlOption())
    .addHelpText("after", `\nExample:\n${kind.examples.map((words) => `  tapedeck stats ${name} ${words}`).join("\n")}`)
    .action(async (sources: readonly string[], options: StatsOptions) =>
      (await import("./run.ts")).stats(kind, withSources(sources, options)),
    );
}

export const statsCommand = () => {
  const command = new Command("stats")
    .summary("show statistics of recorded events")
    .description(`Shows statistics of recorded events.`)
    .addHelpText(
      "after",
      `
Example:
  tapedeck stats loops
  tapedeck stats failures --since 7d`,
    );
  for (const kind of statsKinds) command.addCommand(kindCommand(kind));
  return command;
};
