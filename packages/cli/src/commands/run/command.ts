import { Command, Option } from "commander";
import { collectLabel, urlOptionUnchecked } from "../options.ts";
import type { RunOptions } from "./options.ts";
import { finds, recordableUpstreams } from "./recordable.ts";

export const runCommand = () =>
  new Command("run")
    .summary("run a command and record the Skaffold or Vagrant in it")
    .description(`Runs a command and records the Skaffold or Vagrant in it. The command keeps the terminal, its signals and its \
exit code. What can't be delivered is kept on disk until Tapedeck runs again (\`tapedeck up\`; the demo accepts \
no recordings), or for the next \`tapedeck run\` to the same address. With TAPEDECK_OFF=1 nothing is recorded.`)
    .argument("<command...>", "the command to run")
    .passThroughOptions()
    .addOption(urlOptionUnchecked())
    .addOption(new Option("--developer <name>", "your name (default: login name)").env("TAPEDECK_DEVELOPER"))
    .addOption(
      new Option(
        "--project <name>",
        "name of the project (default: metadata.name of skaffold.yaml, the Vagrantfile's folder, else the folder)",
      ).env("TAPEDECK_PROJECT"),
    )
    .option("--label <name=value>", "add a label to the sessions; repeatable", collectLabel)
    .addOption(
      new Option("--redact <mode>", "mask secrets before they are stored")
        .choices(["on", "off"])
        .default("on")
        .env("TAPEDECK_REDACT"),
    )
    .addOption(
      new Option(
        "--spill <folder>",
        "folder for undelivered recordings; `up` reads it with the same TAPEDECK_SPILL (default: $XDG_STATE_HOME/tapedeck/spill, else ~/.local/state/…)",
      ).env("TAPEDECK_SPILL"),
    )
    .addOption(
      new Option(
        "--upstream <name>",
        "what the command starts (default: by its name; skaffold for any other, such as make)",
      ).choices(recordableUpstreams),
    )
    .addOption(
      new Option("--find <way>", "how Vagrant's server is found (default: by its sockets on Linux, else by its log)")
        .choices(finds)
        .env("TAPEDECK_FIND"),
    )
    .option(
      "--notify",
      "show a notice on this desktop when a loop fails, and when it is good again (env: TAPEDECK_NOTIFY=1)",
    )
    .addHelpText(
      "after",
      `
Example:
  tapedeck run -- skaffold dev
  tapedeck run --notify -- skaffold dev
  tapedeck run --url https://tapedeck.example -- skaffold dev
  tapedeck run --label ticket=SHOP-12 -- skaffold build -p staging
  tapedeck run -- vagrant up
  tapedeck run --upstream vagrant -- make machines`,
    )
    .action(async (command: string[], options: RunOptions) => (await import("./run.ts")).run(command, options));
