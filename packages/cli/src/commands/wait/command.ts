import { durationForm, durationMs } from "@tapedeck/shared/service/settings";
import { Command, InvalidArgumentError } from "commander";
import { collectList, jsonOption, urlOption } from "../options.ts";
import type { WaitOptions } from "./run.ts";

export const waitCommand = () =>
  new Command("wait")
    .summary("wait for an event, in scripts")
    .description(
      `Waits for the next event of these kinds, from the moment of the call on, prints it, and ends. Nothing that happens after \
the call is missed, also when the connection breaks. Ends with code 0 when it came, 1 when one of --or-fail came (or \
something is wrong), 124 when the time is over, 130 and 143 when it was stopped.`,
    )
    .requiredOption("--for <kind>", "loop.succeeded, build.*, *.failed; may be repeated", collectList)
    .option("--or-fail <kind>", "end with code 1 when one of these comes first", collectList)
    .option("-s, --source <source>", "only of these (developer/project); may be repeated", collectList)
    .option("--session <ulid>", "only of these", collectList)
    .option("--subject <name>", "only about these artifacts, resources, pods …", collectList)
    .option("--outcome <outcome>", "only succeeded, failed, canceled, unknown", collectList)
    .option("--timeout <duration>", "wait no longer, such as 5m (default: for ever)", duration)
    .option("--after <position>", "what came after it counts too (`tapedeck status --json` has the newest)")
    .addOption(jsonOption())
    .addOption(urlOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck wait --for loop.succeeded --or-fail loop.failed -s alice/shop --timeout 5m && echo deployed`,
    )
    .action(async (options: WaitOptions) => (await import("./run.ts")).wait(options));

function duration(text: string): number {
  const ms = durationMs(text);
  if (ms !== undefined) return ms;
  throw new InvalidArgumentError(`It is not ${durationForm}.`);
}
