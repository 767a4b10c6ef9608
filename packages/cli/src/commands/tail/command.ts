import { Command, InvalidArgumentError, Option } from "commander";
import {
  addSourceFilter,
  collectList,
  jsonOption,
  sinceOption,
  startText,
  untilOption,
  urlOption,
  withSources,
} from "../options.ts";
import type { TailOptions } from "./run.ts";

export const tailCommand = () =>
  addSourceFilter(new Command("tail"))
    .summary("show events as they happen")
    .description(`Shows events as they happen, one per line, and reconnects by itself. Printed text, and events that another channel \
reports too, are omitted unless --all or --kind includes them.`)
    .option("--session <ulid>", "only these sessions", collectList)
    .option(
      "-k, --kind <kind>",
      "only these kinds: build.failed, build.*, *.failed (see `tapedeck help kinds`)",
      collectList,
    )
    .option("--subject <name>", "only these artifacts, resources, pods …", collectList)
    .option("--artifact <name>", "only these artifacts; repeatable", collectList)
    .option("--outcome <outcome>", "only these outcomes: succeeded, failed, canceled, unknown", collectList)
    .addOption(new Option("-n, --last <n>", "begin with the last n events").default(10).argParser(count))
    .option("--after <position>", "begin after a position (for programs), at `start`, or at a time", startText)
    .addOption(sinceOption().conflicts("after"))
    .addOption(untilOption())
    .option("--all", "show everything, including log text")
    .addOption(new Option("-f, --follow", "continue with new events").default(true))
    .option("--no-follow", "exit when all recorded events have been shown")
    .addOption(jsonOption())
    .addOption(urlOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck tail
  tapedeck tail alice/shop -k 'build.*' -n 50
  tapedeck tail --since 10m -k '*.failed'
  tapedeck tail node-1/host -k 'pod.*' -k app.exited
  tapedeck tail dana/shop -k terminal.written
  tapedeck tail --after start --no-follow --json | jq .summary`,
    )
    .action(async (sources: readonly string[], options: TailOptions) =>
      (await import("./run.ts")).tail(withSources(sources, options)),
    );

function count(text: string): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 0 || number > 1_000)
    throw new InvalidArgumentError("Expected a whole number up to 1000.");
  return number;
}
