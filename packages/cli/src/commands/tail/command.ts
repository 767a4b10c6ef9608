import { Command, InvalidArgumentError, Option } from "commander";
import { collectList, jsonOption, sinceOption, untilOption, urlOption } from "../options.ts";
import type { TailOptions } from "./run.ts";

export const tailCommand = () =>
  new Command("tail")
    .summary("show events as they happen")
    .description(
      `Shows events as they happen, one per line, and goes on by itself when the connection was lost. What is printed, and \
what another channel tells too, is left out, unless --all or --kind asks for them.`,
    )
    .option("-s, --source <source>", "only these (developer/project); may be repeated", collectList)
    .option("--developer <name>", "only these", collectList)
    .option("--project <name>", "only these", collectList)
    .option("--session <ulid>", "only these", collectList)
    .option("-k, --kind <kind>", "only these: build.failed, build.*, *.failed", collectList)
    .option("--subject <name>", "only these artifacts, resources, pods …", collectList)
    .option("--outcome <outcome>", "only succeeded, failed, canceled, unknown", collectList)
    .addOption(new Option("-n, --last <n>", "begin with the last n").default(10).argParser(count))
    .option("--after <position>", "begin after a position (for programs); `start` for all there is")
    .addOption(sinceOption("begin with what was recorded since then").conflicts("after"))
    .addOption(untilOption("end there"))
    .option("--all", "everything, log text too")
    .option("--no-follow", "end when all that was recorded is shown")
    .addOption(jsonOption())
    .addOption(urlOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck tail
  tapedeck tail -s alice/shop -k 'build.*' --last 50
  tapedeck tail --since 10m -k '*.failed'
  tapedeck tail -s node-1/host -k 'pod.*' -k app.exited
  tapedeck tail -s dana/shop -k terminal.written
  tapedeck tail --after start --no-follow --json | jq .summary`,
    )
    .action(async (options: TailOptions) => (await import("./run.ts")).tail(options));

function count(text: string): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 0 || number > 1_000)
    throw new InvalidArgumentError("It is not a whole number up to 1000.");
  return number;
}
