import type { Role } from "@tapedeck/shared/tokens/token";
import { Command, InvalidArgumentError, Option } from "commander";
import { dataOption, elsewhereOption, jsonOption, urlOption, withPlace } from "../options.ts";
import type { RenewTokenOptions } from "./renew.ts";
import type { CreateTokenOptions, ListTokensOptions, RevokeTokenOptions } from "./run.ts";

const roles: readonly Role[] = ["viewer", "controller", "recorder", "admin"];

const collectRole = (text: string, others: readonly Role[] = []): Role[] => {
  const found = roles.find((role) => role === text);
  if (found === undefined) throw new InvalidArgumentError(`Expected one of ${roles.join(", ")}.`);
  return [...others, found];
};

const where = (command: Command) => command.addOption(elsewhereOption()).addOption(dataOption());

const createCommand = () =>
  where(new Command("create"))
    .summary("create a token, and show it once")
    .description(`Creates a token and prints it to stdout. It can't be shown again: only its hash is stored. Programs of Tapedeck read \
it from TAPEDECK_TOKEN; others send "authorization: Bearer <token>".`)
    .option("--name <name>", "what it is for: control calls are recorded under this name")
    .option(
      "--from <file>",
      "create one for each developer of a list, a line each (name, and what to call the token); -: stdin",
    )
    .addOption(
      new Option("--role <role>", `${roles.join(", ")}; repeatable`).argParser(collectRole).makeOptionMandatory(),
    )
    .option("--workspace <name>", "its workspace (default: that of the settings, or of your own token)")
    .option(
      "--all-workspaces",
      "for admins: also allow backup and rebuild, which concern all workspaces; not with --url",
    )
    .option("--developer <name>", "developer whose work it records")
    .option("--machine", "for a program: it is listed and recorded as a machine's")
    .option("--renewable", "its holder may renew it (see `tapedeck token renew`)")
    .option("--expires <duration>", "how long it is valid", "90d")
    .option("-q, --quiet", "print only the token")
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
Examples:
  tapedeck token create --name "Alice's laptop" --role recorder --developer alice
  tapedeck token create --name nightly --machine --renewable --role viewer --expires 30d
  tapedeck token create --from developers.txt --role recorder --role viewer > tokens.tsv`,
    )
    .action(async (options: CreateTokenOptions, command: Command) =>
      (await import("./run.ts")).createToken(withPlace(options, command)),
    );

const listCommand = () =>
  where(new Command("list"))
    .summary("list tokens, without the tokens themselves")
    .description(`Lists tokens with their names, roles and expiry dates. The tokens themselves can't be shown.`)
    .option("--workspace <name>", "only tokens of this workspace")
    .addOption(jsonOption())
    .action(async (options: ListTokensOptions, command: Command) =>
      (await import("./run.ts")).listTokens(withPlace(options, command)),
    );

const revokeCommand = () =>
  where(new Command("revoke"))
    .summary("revoke a token")
    .description(`Revokes a token: it is refused from now on, and what is in progress with it ends within 5 s.`)
    .argument("<id>", "the token to revoke (see `tapedeck token list`)")
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck token revoke 3f0c9a1b22d4`,
    )
    .action(async (id: string, options: RevokeTokenOptions, command: Command) =>
      (await import("./run.ts")).revokeToken(id, withPlace(options, command)),
    );

const renewCommand = () =>
  new Command("renew")
    .summary("renew your own token")
    .description(`Renews the token that your commands use, if it was created with --renewable, in the second half of its life. The \
new one has the same rights, id and length of life; the old one is valid for another hour. A login stores the \
new token; one from TAPEDECK_TOKEN is printed to stdout.`)
    .addOption(urlOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
Example:
  TAPEDECK_TOKEN=$(tapedeck token renew)`,
    )
    .action(async (options: RenewTokenOptions) => (await import("./renew.ts")).renewToken(options));

export const tokenCommand = () =>
  new Command("token")
    .summary("create, list, revoke and renew tokens")
    .description(`Creates, lists, revokes and renews tokens, which give access if \`auth: tokens\` is set. On another \
server they are those of your token's workspace.`)
    .addCommand(createCommand())
    .addCommand(listCommand())
    .addCommand(revokeCommand())
    .addCommand(renewCommand());
