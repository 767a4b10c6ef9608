import { Command, Option } from "commander";
import { collectLabel, formerly, jsonOption, urlOption } from "../options.ts";
import type { ImportOptions } from "./options.ts";

export const importCommand = () =>
  new Command("import")
    .summary("record a session file, or what `skaffold --event-log-file` wrote")
    .description(
      `Records the sessions of files that \`tapedeck export\` wrote, as they were recorded there, under the names that they had \
there or those given here. Nothing is recorded of a file that was changed or cut off.

Or records what \`skaffold --event-log-file\` wrote, or what a saved stream of its HTTP API holds, of any version. The v2 file \
beside it (FILE.v2) is read too.

What is recorded already is not recorded twice.`,
    )
    .argument("<file...>", "what to read")
    .addOption(formerly("--to", "--url"))
    .addOption(urlOption())
    .addOption(
      new Option("--developer <name>", "whose it is (default: as in the file, else login name)").env(
        "TAPEDECK_DEVELOPER",
      ),
    )
    .addOption(
      new Option("--project <name>", "which project it is (default: as in the file, else as `run`)").env(
        "TAPEDECK_PROJECT",
      ),
    )
    .option("--label <name=value>", "put a label on its sessions; may be repeated", collectLabel)
    .addOption(
      new Option("--redact <mode>", "mask secrets (sessions stay as they were exported)")
        .choices(["on", "off"])
        .default("on")
        .env("TAPEDECK_REDACT"),
    )
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck import shop.tapedeck.gz
  tapedeck import shop.tapedeck.gz --project shop-import
  skaffold dev --event-log-file events.log
  tapedeck import events.log --project shop`,
    )
    .action(async (files: string[], options: ImportOptions) => (await import("./run.ts")).importFiles(files, options));
