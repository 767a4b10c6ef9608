import { Command, Option } from "commander";
import { portNumber } from "../options.ts";
import type { LoginOptions, LogoutOptions } from "./run.ts";

export const loginCommand = () =>
  new Command("login")
    .summary("select a Tapedeck server for all commands, and save its token")
    .description(`Saves the address of a Tapedeck server, and a token that it accepts, in $XDG_CONFIG_HOME/tapedeck (default: \
~/.config/tapedeck), readable by you alone. All commands use that server from then on, unless TAPEDECK_URL or \
--url names another. The token is typed, piped in, or taken from TAPEDECK_TOKEN.`)
    .argument("<url>", "https://host[:port]; the default port is 7052")
    .option("--ca <file>", "PEM file of the certificate authorities to trust (default: TAPEDECK_CA)")
    .option("--name <name>", "name of the context (default: the host)")
    .addOption(
      new Option("--grpc-port <port>", "port of gRPC, if a proxy maps it (default: as the server reports)").argParser(
        portNumber,
      ),
    )
    .addHelpText(
      "after",
      `
Example:
  tapedeck login https://tapedeck.example
  tapedeck login https://tapedeck.example --ca ca.pem < token.txt`,
    )
    .action(async (url: string, options: LoginOptions) => (await import("./run.ts")).login(url, options));

export const logoutCommand = () =>
  new Command("logout")
    .summary("forget a Tapedeck server and its token")
    .description(
      `Removes what \`tapedeck login\` saved. The token remains valid: \`tapedeck token revoke\` revokes it.`,
    )
    .argument("[context]", "the context to remove (default: the current one; see `tapedeck context`)")
    .option("--all", "remove all contexts")
    .action(async (name: string | undefined, options: LogoutOptions) =>
      (await import("./run.ts")).logout(name, options),
    );
