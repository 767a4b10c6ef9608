import { upstreamNames } from "@tapedeck/shared/upstreams";
import { Command, Option } from "commander";
import { collectLabel, hostPortLike, urlOption } from "../options.ts";
import type { RecordOptions } from "./options.ts";

export const recordCommand = () =>
  new Command("record")
    .summary("record an upstream that is already running")
    .description(`Records a running Skaffold, Vagrant server or rkt host until Ctrl-C. Waits for the upstream, and continues after \
interruptions. What can't be delivered is kept on disk for the next \`tapedeck record\` of the same source, or \
for \`tapedeck record --waiting\`.`)
    .addOption(new Option("--upstream <name>", "kind of upstream").choices(upstreamNames))
    .option(
      "--address <host:port>",
      "address of Skaffold's --rpc-port, of `rkt api-service` or of Vagrant's server",
      hostPortLike("127.0.0.1:50051"),
    )
    .addOption(urlOption())
    .addOption(
      new Option(
        "--developer <name>",
        "developer of the recording (default: login name; for a rkt host: this machine's name)",
      ).env("TAPEDECK_DEVELOPER"),
    )
    .addOption(
      new Option(
        "--project <name>",
        "project of the recording (default: metadata.name of skaffold.yaml, the Vagrantfile's folder, else the folder; for a rkt host: host)",
      ).env("TAPEDECK_PROJECT"),
    )
    .option("--label <name=value>", "add a label to the sessions; repeatable", collectLabel)
    .addOption(
      new Option("--redact <mode>", "mask secrets before they are stored")
        .choices(["on", "off"])
        .default("on")
        .env("TAPEDECK_REDACT"),
    )
    .option(
      "--set <name=value>",
      "any other setting of a source in tapedeck.yaml, such as logs=off or interval=5s; repeatable",
      collectLabel,
    )
    .addOption(
      new Option(
        "--spill <folder>",
        "folder for undelivered recordings (default: $XDG_STATE_HOME/tapedeck/spill, else ~/.local/state/…)",
      ).env("TAPEDECK_SPILL"),
    )
    .addOption(
      new Option(
        "--waiting [address]",
        "deliver what `run` and `record` could not deliver to that server (or address), and exit",
      ).conflicts(["upstream", "address"]),
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
