import { durationForm, durationMs } from "@tapedeck/shared/service/duration";
import { Command, InvalidArgumentError } from "commander";
import { addSourceFilter, allOption, collectList, jsonOption, startText, urlOption, withSources } from "../options.ts";
import type { WaitOptions } from "./run.ts";

export const waitCommand = () =>
  addSourceFilter(new Command("wait"))
    .summary("wait for an event, in scripts")
    .description(`Waits for the next event of these kinds, prints it, and exits. No event after the call is missed, even if the \
connection breaks. Exit codes: 0 it came, 1 one of --or-fail came first (or an error), 124 timeout, 130 or 143 \
stopped. In the folder of a recorded project, it waits for its source.`)
    .requiredOption(
      "--for <kind>",
      "kinds such as loop.succeeded, build.*, *.failed; repeatable (see `tapedeck help kinds`)",
      kinds,
    )
    .option("--or-fail <kind>", "exit with code 1 if one of these comes first", collectList)
    .addOption(allOption())
    .option("--session <ulid>", "only these sessions", collectList)
    .option("--subject <name>", "only these artifacts, resources, pods …", collectList)
    .option("--outcome <outcome>", "only these outcomes: succeeded, failed, canceled, unknown", collectList)
    .option("--timeout <duration>", "wait no longer than this, such as 5m (default: forever)", duration)
    .option(
      "--after <position>",
      "also count events after this position (`tapedeck status --json` shows the newest), or since a time, such as 10m (ago)",
      startText,
    )
    .addOption(jsonOption())
    .addOption(urlOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck wait --for loop.succeeded --or-fail loop.failed --timeout 5m alice/shop && echo deployed`,
    )
    .action(async (sources: readonly string[], options: WaitOptions) =>
      (await import("./run.ts")).wait(withSources(sources, options)),
    );

/** `kubectl wait --for=condition=ready` waits for a condition; here it is an event. */
function kinds(text: string, values: readonly string[] = []): string[] {
  if (text.includes("=")) throw new InvalidArgumentError("Expected kinds of events, such as loop.succeeded.");
  return collectList(text, values);
}

function duration(text: string): number {
  const ms = durationMs(text);
  if (ms !== undefined) return ms;
  throw new InvalidArgumentError(`Expected ${durationForm}.`);
}
