import { Command } from "commander";
import { collectList, jsonOption, sinceOption, sourceOption, untilOption, urlOption } from "../options.ts";
import { type StatsKind, statsKinds } from "./kinds.ts";
import type { StatsOptions } from "./run.ts";

function kindCommand(kind: StatsKind): Command {
  const { name, groups } = kind;
  const command = new Command(name)
    .summary(kind.summary)
    .description(kind.description)
    .option(
      "-g, --group <columns>",
      `group by any of ${groups.join(", ")}, label.<name>`,
      (text) => collectList(text),
      [...kind.group],
    )
    .addOption(sourceOption())
    .option("--developer <name>", "only these developers; repeatable", collectList)
    .option("--project <name>", "only these projects; repeatable", collectList);
  if (kind.hasArtifact) command.option("--artifact <name>", "only these artifacts; repeatable", collectList);
  return command
    .option("--zone <zone>", "time zone of hours, days and weeks, such as Europe/Berlin (default: UTC)")
    .addOption(sinceOption())
    .addOption(untilOption())
    .addOption(jsonOption())
    .addOption(urlOption())
    .addHelpText("after", `\nExample:\n${kind.examples.map((words) => `  tapedeck stats ${name} ${words}`).join("\n")}`)
    .action(async (options: StatsOptions) => (await import("./run.ts")).stats(kind, options));
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
