import { Command, InvalidArgumentError, Option } from "commander";
import { collectLabel, collectList, dataOption, hostPort, hostPortLike } from "../options.ts";
import { receiverNames } from "./demo-receivers/receivers.ts";
import type { UpOptions } from "./options.ts";

function collectReceivers(text: string, names: readonly string[] = []): readonly string[] {
  const all = collectList(text, names);
  if (all.length > 0 && all.every((name) => receiverNames.includes(name))) return all;
  throw new InvalidArgumentError(`Allowed choices are ${receiverNames.join(", ")}.`);
}

export const upCommand = () =>
  new Command("up")
    .summary("start Tapedeck on this machine")
    .description(`Starts Tapedeck on this machine, with its own NATS and Postgres, until Ctrl-C. Without sources and tapedeck.yaml it \
plays a demo: recordings of real tools, as if six developers ran skaffold dev (two of them in the last two weeks), one vagrant up, and a rkt host.`)
    .option("--skaffold <host:port>", "record the Skaffold with this --rpc-port", hostPort)
    .option(
      "--vagrant <host:port>",
      "record the Vagrant server at this address (one that outlives a command; otherwise use `tapedeck run`)",
      hostPortLike("127.0.0.1:9701"),
    )
    .option("--developer <name>", "developer of these sources (default: login name)")
    .option(
      "--project <name>",
      "name of the project (default: metadata.name of skaffold.yaml, the Vagrantfile's folder, else the folder)",
    )
    .option("--rkt <host:port>", "record the rkt host with this `rkt api-service`", hostPortLike("127.0.0.1:15441"))
    .option("--host-name <name>", "name of that host (default: this machine's name)")
    .option("--label <name=value>", "add a label to the sessions; repeatable", collectLabel)
    .addOption(
      new Option("--redact <mode>", "mask secrets before they are stored (default: on)").choices(["on", "off"]),
    )
    .addOption(
      new Option("--config <file>", "settings file (default: tapedeck.yaml, if present)").env("TAPEDECK_CONFIG"),
    )
    .addOption(dataOption())
    .addOption(new Option("--demo", "play the demo even if there is a tapedeck.yaml, or sources"))
    .addOption(new Option("--no-demo", "without sources: wait for `tapedeck run`"))
    .option(
      "--with <name>",
      `deliver what the demo records to a receiver of this machine, which prints it: ${receiverNames.join(", ")}; repeatable`,
      collectReceivers,
    )
    .option("--insecure", "allow listening beyond this machine without TLS or tokens")
    .option("--verbose", "show what the services log")
    .addHelpText(
      "after",
      `
Example:
  tapedeck up
  tapedeck up --with otlp,slack
  tapedeck up --skaffold 127.0.0.1:50051 --developer alice --project shop
  tapedeck up --vagrant 127.0.0.1:9701 --project cluster
  tapedeck up --rkt 127.0.0.1:15441 --host-name node-1`,
    )
    .action(async (options: UpOptions) => (await import("./run.ts")).up(options));
