import { Command, Option } from "commander";
import { collectLabel, formerly, urlOptionUnchecked } from "../options.ts";
import type { RunOptions } from "./options.ts";
import { finds, recordedUpstreams } from "./recordable.ts";

export const runCommand = () =>
  new Command("run")
    .summary("run a command and record the Skaffold or Vagrant in it")
    .description(
      `Runs a command and records the Skaffold or Vagrant in it, for as long as it lives. The command keeps the terminal, \
its signals and its exit code. What Tapedeck does not take now waits on the disk until Tapedeck \
runs again (\`tapedeck up\`; the demo takes nothing), or for the next \`tapedeck run\` to the same address. With TAPEDECK_OFF=1 the command runs as it is.`,
    )
    .argument("<command...>", "what to run")
    .passThroughOptions()
    .addOption(urlOptionUnchecked())
    .addOption(formerly("--to", "--url"))
    .addOption(new Option("--developer <name>", "who you are (default: login name)").env("TAPEDECK_DEVELOPER"))
    .addOption(
      new Option(
        "--project <name>",
        "which project it is (default: metadata.name of skaffold.yaml, the Vagrantfile's folder, else the folder)",
      ).env("TAPEDECK_PROJECT"),
    )
    .option("--label <name=value>", "put a label on the session; may be repeated", collectLabel)
    .addOption(
      new Option("--redact <mode>", "mask secrets before they are stored")
        .choices(["on", "off"])
        .default("on")
        .env("TAPEDECK_REDACT"),
    )
    .addOption(
      new Option(
        "--spill <folder>",
        "where frames wait; `up` looks there with the same TAPEDECK_SPILL (default: $XDG_STATE_HOME/tapedeck/spill, else ~/.local/state/…)",
      ).env("TAPEDECK_SPILL"),
    )
    .addOption(
      new Option(
        "--upstream <name>",
        "what the command starts (default: what its name says; skaffold for any other, such as make)",
      ).choices(recordedUpstreams),
    )
    .addOption(
      new Option("--find <way>", "how Vagrant's server is found (default: by its sockets on Linux, else by its log)")
        .choices(finds)
        .env("TAPEDECK_FIND"),
    )
    .addHelpText(
      "after",
      `
Example:
  tapedeck run -- skaffold dev
  tapedeck run --url https://tapedeck.example -- skaffold dev
  tapedeck run --label ticket=SHOP-12 -- skaffold build -p staging
  tapedeck run -- vagrant up
  tapedeck run --upstream vagrant -- make machines`,
    )
    .action(async (command: string[], options: RunOptions) => (await import("./run.ts")).run(command, options));
