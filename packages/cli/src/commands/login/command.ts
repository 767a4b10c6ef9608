import { Command, Option } from "commander";
import { portNumber } from "../options.ts";
import type { LoginOptions, LogoutOptions } from "./run.ts";

export const loginCommand = () =>
  new Command("login")
    .summary("choose a Tapedeck for all commands, and keep the token for it")
    .description(
      `Keeps where a Tapedeck is, and the token for it, in $XDG_CONFIG_HOME/tapedeck (else ~/.config/tapedeck), for you alone to \
read; all commands go there from then on. The token is typed, piped in, or taken from TAPEDECK_TOKEN, and is kept only if that \
Tapedeck lets it in. TAPEDECK_URL and --url go before it.`,
    )
    .argument("<url>", "https://host[:port]; 7052 when no port is written")
    .option("--ca <file>", "PEM file of the authorities to trust there (default: TAPEDECK_CA)")
    .option("--name <name>", "what to call it (default: its host)")
    .addOption(
      new Option("--grpc-port <port>", "where gRPC is, when a proxy maps it (default: as it says)").argParser(
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
    .summary("forget a Tapedeck and its token")
    .description("Forgets what `tapedeck login` has kept. The token stays good: `tapedeck token revoke` ends it.")
    .argument("[context]", "which one (default: the one in use; see `tapedeck context`)")
    .option("--all", "all of them")
    .addHelpText(
      "after",
      `
Example:
  tapedeck logout`,
    )
    .action(async (name: string | undefined, options: LogoutOptions) =>
      (await import("./run.ts")).logout(name, options),
    );
