import { Command } from "commander";
import { jsonOption } from "../options.ts";
import type { ContextsOptions } from "./run.ts";

const listCommand = () =>
  new Command("list")
    .summary("show them")
    .description("Shows the Tapedecks that commands may go to.")
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck context list`,
    )
    .action(async (options: ContextsOptions) => (await import("./run.ts")).listContexts(options));

const useCommand = () =>
  new Command("use")
    .summary("choose one")
    .description("Chooses the Tapedeck that commands go to; `local` is the one of this machine.")
    .argument("<context>", "its name")
    .addHelpText(
      "after",
      `
Example:
  tapedeck context use local`,
    )
    .action(async (name: string) => (await import("./run.ts")).useContext(name));

export const contextCommand = () =>
  new Command("context")
    .summary("show and choose the Tapedeck that commands go to")
    .description("Shows and chooses the Tapedeck that commands go to, of those that `tapedeck login` has kept.")
    .addCommand(listCommand(), { isDefault: true })
    .addCommand(useCommand())
    .addHelpText(
      "after",
      `
Example:
  tapedeck context
  tapedeck context use local`,
    );
