import type { Role } from "@tapedeck/shared/tokens/token";
import { Command, InvalidArgumentError, Option } from "commander";
import { dataOption, elsewhereOption, jsonOption } from "../options.ts";
import type { CreateTokenOptions, ListTokensOptions, RevokeTokenOptions } from "./run.ts";

const roles: readonly Role[] = ["viewer", "controller", "recorder", "admin"];

const collectRole = (text: string, others: readonly Role[] = []): Role[] => {
  const found = roles.find((role) => role === text);
  if (found === undefined) throw new InvalidArgumentError(`It is not one of ${roles.join(", ")}.`);
  return [...others, found];
};

const where = (command: Command) => command.addOption(elsewhereOption()).addOption(dataOption());

const createCommand = () =>
  where(new Command("create"))
    .summary("make a token, and show it this once")
    .description(
      `Makes a token and writes it to stdout, this once: only its hash is kept. Programs of Tapedeck take it from \
TAPEDECK_TOKEN, others send "authorization: Bearer <token>".`,
    )
    .requiredOption("--name <name>", "what it is for: control calls are recorded under this name")
    .addOption(
      new Option("--role <role>", `${roles.join(", ")}; may be repeated`).argParser(collectRole).makeOptionMandatory(),
    )
    .option("--workspace <name>", "which workspace it is for (default: the one of these settings, or of your token)")
    .option("--all-workspaces", "an admin's: also to back up and to rebuild, which concern all; not with --url")
    .option("--developer <name>", "whose work a recorder records")
    .option("--expires <duration>", "how long it is good for", "90d")
    .option("-q, --quiet", "write the token and nothing else")
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
Examples:
  tapedeck token create --name "Alice's laptop" --role recorder --developer alice
  tapedeck token create --name dashboard --role viewer --expires 365d`,
    )
    .action(async (options: CreateTokenOptions) => (await import("./run.ts")).createToken(options));

const listCommand = () =>
  where(new Command("list"))
    .summary("show what tokens there are, without the tokens")
    .description(
      "Shows what tokens there are: for whom, for what, and until when. The tokens themselves nobody can show.",
    )
    .option("--workspace <name>", "only those of this workspace")
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck token list`,
    )
    .action(async (options: ListTokensOptions) => (await import("./run.ts")).listTokens(options));

const revokeCommand = () =>
  where(new Command("revoke"))
    .summary("end a token")
    .description("Ends a token: nobody is let in with it any more, and what is under way with it ends within 5 s.")
    .argument("<id>", "which one (see `tapedeck token list`)")
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck token revoke 3f0c9a1b22d4`,
    )
    .action(async (id: string, options: RevokeTokenOptions) => (await import("./run.ts")).revokeToken(id, options));

export const tokenCommand = () =>
  new Command("token")
    .summary("make, list and revoke tokens")
    .description(
      `Makes, lists and revokes tokens, with which people and programs are let in where \`auth: tokens\` is set. Works on the \
Tapedeck of this machine, or with --url and an admin's token in TAPEDECK_TOKEN on another one, for that token's workspace.`,
    )
    .addCommand(createCommand())
    .addCommand(listCommand())
    .addCommand(revokeCommand());
