import { Command } from "commander";
import { jsonOption } from "../options.ts";
import type { ExplainOptions } from "./run.ts";

export const explainCommand = () =>
  new Command("explain")
    .summary("find in any output why a command failed")
    .description(`Reads the output of a command and prints the line that names the cause, with its class (such as "compile error"), its \
file and line, and the tool's advice. Prints nothing where nothing failed. The output is neither sent nor stored.`)
    .argument("[file]", "file with the output (default: standard input)")
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
Example:
  make 2>&1 | tapedeck explain
  tapedeck explain build.log --json`,
    )
    .action(async (file: string | undefined, options: ExplainOptions) =>
      (await import("./run.ts")).explainFile(file, options),
    );
