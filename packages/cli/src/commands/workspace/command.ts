import { namePart } from "@tapedeck/shared/source";
import { Command } from "commander";
import { dataOption, elsewhereOption, jsonOption, withPlace } from "../options.ts";
import type { RemoveOptions, RetentionOptions, WorkspaceOptions } from "./run.ts";

const where = (command: Command) =>
  command.addOption(elsewhereOption()).addOption(dataOption()).addOption(jsonOption());
const named = (name: string) => new Command(name).argument("<name>", "the workspace", namePart);

const listCommand = () =>
  where(new Command("list"))
    .summary("list workspaces with their sizes and their retention")
    .description(`Lists every workspace: its sources, events and bytes, its oldest and newest message, how far its tables are behind, \
and how long it is kept. With a token that is not for all workspaces, only its own.`)
    .action(async (options: WorkspaceOptions, command: Command) =>
      (await import("./run.ts")).listWorkspaces(withPlace(options, command)),
    );

const showCommand = () =>
  where(named("show"))
    .summary("show a workspace")
    .description("Shows a workspace as `list` does, one figure per line.")
    .action(async (name: string, options: WorkspaceOptions, command: Command) =>
      (await import("./run.ts")).showWorkspace(name, withPlace(options, command)),
    );

const removeCommand = () =>
  where(named("remove"))
    .summary("permanently remove a workspace with all that is recorded in it")
    .description(`Permanently removes the log of a workspace and its tables, in seconds whatever their size. Refused while something is \
recorded there. Tokens, logins for SQL, the retention and the audit log stay, and so do earlier backups and exports. What is \
recorded there later begins a new log.

The server goes on also if this command is stopped; the same command shows the progress.`)
    .option("--yes", "skip the confirmation")
    .addHelpText(
      "after",
      `
Example:
  tapedeck workspace remove old-team`,
    )
    .action(async (name: string, options: RemoveOptions, command: Command) =>
      (await import("./run.ts")).removeWorkspace(name, withPlace(options, command)),
    );

const retentionCommand = () =>
  where(named("retention"))
    .summary("show or change how long a workspace is kept")
    .description(`Shows how long what is recorded in a workspace is kept, or changes it: \`forever\`, \`default\` (as the settings \
retention.facts and retention.text say), or a duration.

Sessions that ended longer ago than --facts leave the log and the tables; builds stay counted by day, without developers. Text older \
than --text leaves the log: that holds for what is recorded from the next connection of a tap on.`)
    .option("--facts <duration>", "how long sessions stay after their end, such as 90d")
    .option("--text <duration>", "how long text stays, such as 14d")
    .addHelpText(
      "after",
      `
Example:
  tapedeck workspace retention shop --facts 90d --text 14d`,
    )
    .action(async (name: string, options: RetentionOptions, command: Command) =>
      (await import("./run.ts")).workspaceRetention(name, withPlace(options, command)),
    );

export const workspaceCommand = () =>
  new Command("workspace")
    .summary("list workspaces, remove one, and say how long one is kept")
    .description(`Lists workspaces, removes one, and says how long what is recorded in one is kept. Works on this machine; with --url, or \
after \`tapedeck login\`, elsewhere with an admin's token: for its workspace, or for all if it was created with --all-workspaces.`)
    .addCommand(listCommand())
    .addCommand(showCommand())
    .addCommand(removeCommand())
    .addCommand(retentionCommand());
