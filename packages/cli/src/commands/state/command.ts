import { Command, InvalidArgumentError } from "commander";
import { jsonOption, sourceArgument, sourceOption, urlOption } from "../options.ts";
import { isFuture, notYet, positionOrTime, timeForm } from "../time.ts";
import type { StateOptions } from "./run.ts";

export const stateCommand = () =>
  new Command("state")
    .summary("show the state of a source, now or at any recorded time")
    .description(`Shows the state of a source, now or at any recorded time.`)
    .addArgument(sourceArgument())
    .addOption(sourceOption())
    .option("--session <ulid>", "show this session (default: the newest)")
    .option(
      "--at <moment>",
      "a position, or a time: 10m (ago), yesterday, 2026-01-31T12:00:00Z (default: now)",
      positionOrTimeText,
    )
    .addOption(jsonOption())
    .addOption(urlOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck state
  tapedeck state alice/shop
  tapedeck state node-1/host
  tapedeck state alice/shop --at 2026-01-31T12:00:00Z --json`,
    )
    .action(async (source: string | undefined, options: StateOptions) =>
      (await import("./run.ts")).state(source === undefined ? options : { ...options, source }),
    );

function positionOrTimeText(text: string): string {
  const found = positionOrTime(text);
  if (isFuture(found)) throw new InvalidArgumentError(notYet);
  if (found !== undefined) return found;
  throw new InvalidArgumentError(`Expected a position, ${timeForm}.`);
}
