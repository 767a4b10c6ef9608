import { Command } from "commander";
import { collectList, jsonOption, urlOption, wholeNumber } from "./options.ts";

export type StatsBuildsOptions = {
  readonly url?: string;
  readonly json?: boolean;
  readonly group: readonly string[];
  readonly developer?: readonly string[];
  readonly project?: readonly string[];
  readonly artifact?: readonly string[];
  readonly days?: number;
  readonly from?: string;
  readonly to?: string;
};

const buildsCommand = () =>
  new Command("builds")
    .summary("how long builds take, and how many fail")
    .description(
      "How long builds take, and how many fail. Percentiles leave out cached, canceled and unfinished builds.",
    )
    .option("-g, --group <columns>", "any of artifact, developer, project, day, source", (text) => collectList(text), [
      "artifact",
    ])
    .option("--developer <name>", "only these; may be repeated", collectList)
    .option("--project <name>", "only these; may be repeated", collectList)
    .option("--artifact <name>", "only these; may be repeated", collectList)
    .option("--days <n>", "the last n days", wholeNumber)
    .option("--from <time>", "started at or after, 2026-01-31T12:00:00Z")
    .option("--to <time>", "started before")
    .addOption(jsonOption())
    .addOption(urlOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck stats builds --group artifact,developer --days 7`,
    )
    .action(async (options: StatsBuildsOptions) => (await import("../ask/stats-builds.ts")).statsBuilds(options));

export const statsCommand = () =>
  new Command("stats")
    .summary("numbers from what was recorded")
    .description("Numbers from what was recorded.")
    .addCommand(buildsCommand());
