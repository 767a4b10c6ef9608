import { Command } from "commander";
import { collectList, formerly, jsonOption, sinceOption, sourceOption, untilOption, urlOption } from "../options.ts";
import type { StatsBuildsOptions } from "./run.ts";

const buildsCommand = () =>
  new Command("builds")
    .summary("show how long builds take, and how many fail")
    .description(
      `Shows how long builds take, and how many fail. Percentiles leave out cached, canceled and unfinished builds.`,
    )
    .option(
      "-g, --group <columns>",
      "group by any of artifact, developer, project, day, source",
      (text) => collectList(text),
      ["artifact"],
    )
    .addOption(sourceOption())
    .option("--developer <name>", "only these developers; repeatable", collectList)
    .option("--project <name>", "only these projects; repeatable", collectList)
    .option("--artifact <name>", "only these artifacts; repeatable", collectList)
    .addOption(sinceOption("builds that started at or after this time"))
    .addOption(untilOption("builds that started before this time"))
    .addOption(formerly("--days", "--since (such as --since 7d)"))
    .addOption(formerly("--from", "--since"))
    .addOption(formerly("--to", "--until"))
    .addOption(jsonOption())
    .addOption(urlOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck stats builds --group artifact,developer --since 7d
  tapedeck stats builds -s alice/shop --group day`,
    )
    .action(async (options: StatsBuildsOptions) => (await import("./run.ts")).statsBuilds(options));

export const statsCommand = () =>
  new Command("stats")
    .summary("show statistics of recorded events")
    .description(`Shows statistics of recorded events.`)
    .addCommand(buildsCommand())
    .addHelpText(
      "after",
      `
Example:
  tapedeck stats builds`,
    );
