import { durationForm, durationMs } from "@tapedeck/shared/service/settings";
import { Command, InvalidArgumentError, Option } from "commander";
import { formerly, sourceOption, urlOption } from "../options.ts";
import type { ReplayOptions } from "./run.ts";

export const replayCommand = () =>
  new Command("replay")
    .summary("serve a recorded Skaffold session as if it ran here")
    .description(
      `Serves a recorded Skaffold session on this machine as its Skaffold did, on Skaffold's own ports: for the test of an IDE \
plugin, or to look at a bug report with the tools that you have. The session comes from a Tapedeck, or from a file that \
\`tapedeck export\` wrote. Nothing is recorded, and calls that would build or deploy are refused.`,
    )
    .argument("[session]", "its id (see `tapedeck sessions`), or a file; none: the source's newest")
    .addOption(urlOption())
    .addOption(formerly("--from", "--url"))
    .addOption(sourceOption())
    .option("--rpc-port <port>", "gRPC; 0: any free one", port, 50_051)
    .option("--rpc-http-port <port>", "HTTP; 0: any free one", port, 50_052)
    .addOption(
      new Option("--speed <factor>", "1: as fast as it was, 10: ten times as fast, max: at once")
        .default(1)
        .argParser(factor),
    )
    .option("--longest-pause <duration>", "wait no longer than this between two events, such as 2s", duration)
    .option("--exit", "end when it is played to its end")
    .addHelpText(
      "after",
      `
Examples:
  tapedeck replay -s alice/shop --speed 10
  tapedeck replay shop.tapedeck.gz --speed max & curl localhost:50052/v1/state`,
    )
    .action(async (session: string | undefined, options: ReplayOptions) =>
      (await import("./run.ts")).replay(session, options),
    );

function port(text: string): number {
  const number = Number(text);
  if (/^\d{1,5}$/.test(text) && number <= 65_535) return number;
  throw new InvalidArgumentError("It is not a port.");
}

function factor(text: string): number {
  if (text === "max") return Number.POSITIVE_INFINITY;
  const number = Number(text);
  if (number > 0 && number <= 1_000) return number;
  throw new InvalidArgumentError("It is not a number above 0, up to 1000, and not max.");
}

function duration(text: string): number {
  const ms = durationMs(text);
  if (ms !== undefined) return ms;
  throw new InvalidArgumentError(`It is not ${durationForm}.`);
}
