import { Command } from "commander";
import { jsonOption } from "../options.ts";
import type { ContextsOptions } from "./run.ts";

const listCommand = () =>
  new Command("list")
    .summary("list the contexts")
    .description(`Lists the Tapedeck servers that commands can use.`)
    .addOption(jsonOption())
    .action(async (options: ContextsOptions) => (await import("./run.ts")).listContexts(options));

const useCommand = () =>
  new Command("use")
    .summary("select a context")
    .description(`Selects the Tapedeck server that commands use; \`local\` is the one on this machine.`)
    .argument("<context>", "name of the context")
    .addHelpText(
      "after",
      `
Example:
  tapedeck context use local`,
    )
    .action(async (name: string) => (await import("./run.ts")).useContext(name));

export const contextCommand = () =>
  new Command("context")
    .summary("list and select the Tapedeck servers that commands use")
    .description(`Lists and selects the Tapedeck servers that \`tapedeck login\` has saved.`)
    .addCommand(listCommand(), { isDefault: true })
    .addCommand(useCommand())
    .addHelpText(
      "after",
      `
Example:
  tapedeck context
  tapedeck context use local`,
    );
