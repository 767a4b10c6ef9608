import { Command, InvalidArgumentError } from "commander";
import { jsonOption, sourceOption, urlOption } from "../options.ts";
import { positionOrTime, timeForm } from "../time.ts";
import type { StateOptions } from "./run.ts";

export const stateCommand = () =>
  new Command("state")
    .summary("show the state of a source, now or at any recorded time")
    .description(`Shows the state of a source, now or at any recorded time.`)
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
  tapedeck state -s alice/shop
  tapedeck state -s dana/shop
  tapedeck state -s node-1/host
  tapedeck state -s alice/shop --at 2026-01-31T12:00:00Z --json`,
    )
    .action(async (options: StateOptions) => (await import("./run.ts")).state(options));

function positionOrTimeText(text: string): string {
  const found = positionOrTime(text);
  if (found !== undefined) return found;
  throw new InvalidArgumentError(`Expected a position, ${timeForm}.`);
}
