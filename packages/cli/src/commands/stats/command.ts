import { Command } from "commander";
import { collectList, formerly, jsonOption, sinceOption, sourceOption, untilOption, urlOption } from "../options.ts";
import type { StatsBuildsOptions } from "./run.ts";

const buildsCommand = () =>
  new Command("builds")
    .summary("how long builds take, and how many fail")
    .description(
      "How long builds take, and how many fail. Percentiles leave out cached, canceled and unfinished builds.",
    )
    .option("-g, --group <columns>", "any of artifact, developer, project, day, source", (text) => collectList(text), [
      "artifact",
    ])
    .addOption(sourceOption())
    .option("--developer <name>", "only these; may be repeated", collectList)
    .option("--project <name>", "only these; may be repeated", collectList)
    .option("--artifact <name>", "only these; may be repeated", collectList)
    .addOption(sinceOption("started since then"))
    .addOption(untilOption("started before"))
    .addOption(formerly("--days", "--since, such as --since 7d,"))
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
    .summary("numbers from what was recorded")
    .description("Numbers from what was recorded.")
    .addCommand(buildsCommand())
    .addHelpText(
      "after",
      `
Example:
  tapedeck stats builds`,
    );
