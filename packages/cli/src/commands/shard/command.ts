import { Command } from "commander";
import { jsonOption, urlOption } from "../options.ts";
import type { ListShardsOptions, MoveOptions } from "./run.ts";

const listCommand = () =>
  new Command("list")
    .summary("list the shards and their workspaces")
    .description(`Lists the shards of a server that has several, and their workspaces. Needs a token created with \
--all-workspaces.`)
    .addOption(jsonOption())
    .addOption(urlOption())
    .action(async (options: ListShardsOptions) => (await import("./run.ts")).listShards(options));

const moveCommand = () =>
  new Command("move")
    .summary("move a workspace to another shard")
    .description(`Moves a workspace to another shard while it is written to. Recording pauses while the last messages are copied. \
Run it again to continue an interrupted move. Needs a token created with --all-workspaces.`)
    .argument("<workspace>", "the workspace")
    .requiredOption("--to <shard>", "the name of the shard: see `tapedeck shard list`")
    .addOption(urlOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck shard move team-b --to two`,
    )
    .action(async (workspace: string, options: MoveOptions) =>
      (await import("./run.ts")).moveWorkspace(workspace, options),
    );

export const shardCommand = () =>
  new Command("shard")
    .summary("list shards, and move workspaces between them")
    .description("Lists the shards of a Tapedeck server that has several, and moves workspaces between them.")
    .addCommand(listCommand())
    .addCommand(moveCommand());
