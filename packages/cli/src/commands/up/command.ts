import { Command, Option } from "commander";
import { collectLabel, dataOption, hostPort, hostPortLike } from "../options.ts";
import type { UpOptions } from "./options.ts";

export const upCommand = () =>
  new Command("up")
    .summary("start Tapedeck on this machine")
    .description(
      `Starts Tapedeck on this machine, with a NATS and a Postgres of its own, until Ctrl-C. With nothing configured it \
plays a demo that goes on and on: four developers, each with a skaffold dev, somebody who runs vagrant up, and a rkt host.`,
    )
    .option("--skaffold <host:port>", "record the Skaffold whose --rpc-port this is", hostPort)
    .option(
      "--vagrant <host:port>",
      "record the Vagrant server that listens there (one that outlives a command; else: `tapedeck run`)",
      hostPortLike("127.0.0.1:9701"),
    )
    .option("--developer <name>", "whose these are (default: login name)")
    .option(
      "--project <name>",
      "which project it is (default: metadata.name of skaffold.yaml, the Vagrantfile's folder, else the folder)",
    )
    .option("--rkt <host:port>", "record the rkt host whose `rkt api-service` this is", hostPortLike("127.0.0.1:15441"))
    .option("--host-name <name>", "what that host is called (default: this machine's name)")
    .option("--label <name=value>", "put a label on the sessions of these; may be repeated", collectLabel)
    .addOption(
      new Option("--redact <mode>", "mask secrets before they are stored (default: on)").choices(["on", "off"]),
    )
    .addOption(new Option("--config <file>", "settings (default: tapedeck.yaml, if there)").env("TAPEDECK_CONFIG"))
    .addOption(dataOption())
    .addOption(new Option("--demo", "play the demo whatever is configured"))
    .addOption(new Option("--no-demo", "with nothing configured: wait for `tapedeck run`"))
    .option("--insecure", "listen beyond this machine without TLS or tokens, where the settings say so")
    .option("--verbose", "show what the services log")
    .addHelpText(
      "after",
      `
Example:
  tapedeck up
  tapedeck up --skaffold 127.0.0.1:50051 --developer alice --project shop
  tapedeck up --vagrant 127.0.0.1:9701 --project cluster
  tapedeck up --rkt 127.0.0.1:15441 --host-name node-1`,
    )
    .action(async (options: UpOptions) => (await import("./run.ts")).up(options));
