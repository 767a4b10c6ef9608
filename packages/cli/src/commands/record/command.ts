import { upstreamNames } from "@tapedeck/shared/upstreams";
import { Command, Option } from "commander";
import { collectLabel, formerly, hostPortLike, urlOption } from "../options.ts";
import type { RecordOptions } from "./options.ts";

export const recordCommand = () =>
  new Command("record")
    .summary("record something that runs already")
    .description(
      `Records a Skaffold, Vagrant server or rkt host that runs already, until Ctrl-C: waits for it, and goes on with it after \
every interruption of it or of Tapedeck. What Tapedeck does not take now waits on the disk for the next \`tapedeck record\` \
of the same source, or for \`tapedeck record --waiting\`.`,
    )
    .addOption(new Option("--upstream <name>", "what it is").choices(upstreamNames))
    .option(
      "--address <host:port>",
      "where it listens: Skaffold's --rpc-port, `rkt api-service`, Vagrant's server",
      hostPortLike("127.0.0.1:50051"),
    )
    .addOption(urlOption())
    .addOption(formerly("--to", "--url"))
    .addOption(
      new Option("--developer <name>", "whose it is (default: login name; of a rkt host: this machine's name)").env(
        "TAPEDECK_DEVELOPER",
      ),
    )
    .addOption(
      new Option(
        "--project <name>",
        "which project it is (default: metadata.name of skaffold.yaml, the Vagrantfile's folder, else the folder; of a rkt host: host)",
      ).env("TAPEDECK_PROJECT"),
    )
    .option("--label <name=value>", "put a label on its sessions; may be repeated", collectLabel)
    .addOption(
      new Option("--redact <mode>", "mask secrets before they are stored")
        .choices(["on", "off"])
        .default("on")
        .env("TAPEDECK_REDACT"),
    )
    .option(
      "--set <name=value>",
      "what else a source in tapedeck.yaml may say, such as logs=off or interval=5s; may be repeated",
      collectLabel,
    )
    .addOption(
      new Option(
        "--spill <folder>",
        "where frames wait (default: $XDG_STATE_HOME/tapedeck/spill, else ~/.local/state/…)",
      ).env("TAPEDECK_SPILL"),
    )
    .option(
      "--waiting [address]",
      "push what `run` and `record` have left for that Tapedeck (or for that address), and end",
    )
    .addHelpText(
      "after",
      `
Example:
  tapedeck record --upstream skaffold --address 127.0.0.1:50051
  tapedeck record --upstream rkt --address 127.0.0.1:15441 --url https://tapedeck.example
  tapedeck record --waiting --url https://tapedeck.example`,
    )
    .action(async (options: RecordOptions) => (await import("./run.ts")).record(options));
