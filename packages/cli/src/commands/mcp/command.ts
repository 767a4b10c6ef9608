import { Command } from "commander";
import { urlOption } from "../options.ts";
import type { McpOptions } from "./run.ts";

export const mcpCommand = () =>
  new Command("mcp")
    .summary("let an AI assistant ask this Tapedeck (MCP)")
    .description(`Speaks the Model Context Protocol on its input and output, for an assistant that starts it. It asks the server of \
\`tapedeck login\` with the login's token, so no token stands in the assistant's settings.`)
    .option("--allow-trigger", "let the assistant build, sync and deploy, if the token may control")
    .addOption(urlOption())
    .addHelpText(
      "after",
      `
Example:
  claude mcp add tapedeck -- tapedeck mcp
  tapedeck mcp --allow-trigger`,
    )
    .action(async (options: McpOptions) => (await import("./run.ts")).mcp(options));
