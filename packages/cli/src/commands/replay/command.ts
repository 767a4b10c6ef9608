import { durationForm, durationMs } from "@tapedeck/shared/service/duration";
import { Command, InvalidArgumentError, Option } from "commander";
import { sourceOption, urlOption } from "../options.ts";
import type { ReplayOptions } from "./run.ts";

export const replayCommand = () =>
  new Command("replay")
    .summary("serve a recorded Skaffold session as if it ran here")
    .description(`Serves a recorded Skaffold session as Skaffold did, on Skaffold's own ports: to test an IDE plugin, or to \
inspect a bug report. The session comes from a Tapedeck server, or from a file that \`tapedeck export\` wrote. \
Nothing is recorded, and calls that would build or deploy are refused.`)
    .argument(
      "[session]",
      "id of the session (see `tapedeck sessions`) or a file; default: the newest session of the source",
    )
    .addOption(urlOption())
    .addOption(sourceOption())
    .option("--rpc-port <port>", "port of gRPC; 0: any free port", port, 50_051)
    .option("--rpc-http-port <port>", "port of HTTP; 0: any free port", port, 50_052)
    .addOption(
      new Option("--speed <factor>", "1: the original speed, 10: ten times as fast, max: without pauses")
        .default(1)
        .argParser(factor),
    )
    .option("--longest-pause <duration>", "wait no longer than this between two events, such as 2s", duration)
    .option("--exit", "exit at the end of the session")
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
  throw new InvalidArgumentError("Expected a port number.");
}

function factor(text: string): number {
  if (text === "max") return Number.POSITIVE_INFINITY;
  const number = Number(text);
  if (number > 0 && number <= 1_000) return number;
  throw new InvalidArgumentError("Expected a number above 0 and up to 1000, or max.");
}

function duration(text: string): number {
  const ms = durationMs(text);
  if (ms !== undefined) return ms;
  throw new InvalidArgumentError(`Expected ${durationForm}.`);
}
