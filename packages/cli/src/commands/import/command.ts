import { Command, Option } from "commander";
import { collectLabel, jsonOption, urlOption } from "../options.ts";
import type { ImportOptions } from "./options.ts";

export const importCommand = () =>
  new Command("import")
    .summary("import session files or event logs of Skaffold")
    .description(`Imports sessions from files that \`tapedeck export\` wrote, exactly as they were recorded, under their original names \
or under the names set here. A file that is truncated or was modified is refused as a whole.

Also imports what \`skaffold --event-log-file\` of any version wrote, or a saved stream of its HTTP API. The v2 file \
beside it (FILE.v2) is read too.

Nothing is recorded twice.`)
    .argument("<file...>", "files to import")
    .addOption(urlOption())
    .addOption(
      new Option("--developer <name>", "developer of the recording (default: as in the file, else login name)").env(
        "TAPEDECK_DEVELOPER",
      ),
    )
    .addOption(
      new Option("--project <name>", "project of the recording (default: as in the file, else as for `run`)").env(
        "TAPEDECK_PROJECT",
      ),
    )
    .option("--label <name=value>", "add a label to the sessions; repeatable", collectLabel)
    .addOption(
      new Option("--redact <mode>", "mask secrets (session files are imported as they are)")
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
