import { Command, Option } from "commander";
import {
  addSessionFlags,
  dataOption,
  jsonOption,
  sourcesArgument,
  urlOption,
  wholeNumber,
  withSources,
} from "../options.ts";
import type { StatusOptions } from "./run.ts";

export const statusCommand = () =>
  addSessionFlags(new Command("status").addArgument(sourcesArgument()))
    .summary("show the recorded sources and the health of the recording")
    .description(
      `Shows the recorded sources: their status and address, the last event, gaps, and what waits to be delivered.`,
    )
    .addOption(new Option("-n, --limit <n>", "show at most n sources").argParser(wholeNumber))
    .addOption(jsonOption())
    .addOption(urlOption())
    .addOption(dataOption())
    .action(async (sources: readonly string[], options: StatusOptions) =>
      (await import("./run.ts")).status(withSources(sources, options)),
    );
