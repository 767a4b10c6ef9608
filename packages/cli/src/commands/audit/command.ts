import { Command, Option } from "commander";
import { jsonOption, sinceOption, untilOption, urlOption, wholeNumber } from "../options.ts";
import type { AuditOptions } from "./run.ts";

export const auditCommand = () =>
  new Command("audit")
    .summary("show who did what")
    .description(`Lists who did what, oldest first: sign-ins by the identity provider, control calls, tokens, exports, erasures, \
rebuilds and backups. Reading is not recorded. A line has the time, the action, the kind of caller, the \
workspace and the caller's name. If tokens are required, it needs an admin's token and lists that token's \
workspace.`)
    .addOption(sinceOption())
    .addOption(untilOption())
    .addOption(new Option("-n, --limit <n>", "only the last n").argParser(wholeNumber))
    .addOption(jsonOption())
    .addOption(urlOption())
    .addHelpText(
      "after",
      `
Examples:
  tapedeck audit --since yesterday
  tapedeck audit --since 30d --json > audit.jsonl`,
    )
    .action(async (options: AuditOptions) => (await import("./run.ts")).audit(options));
