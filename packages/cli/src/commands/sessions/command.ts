import { Command } from "commander";
import { addListFilter, jsonOption, limitOption, urlOption, withSources } from "../options.ts";
import type { SessionsOptions } from "./run.ts";

export const sessionsCommand = () =>
  addListFilter(new Command("sessions"))
    .summary("list the recorded sessions, newest first")
    .description(`Lists the recorded sessions, the last recorded first: a new import is at the top. A session is one lifetime of a \
Skaffold process or a Vagrant server, or one data directory of rkt.`)
    .addOption(limitOption(20))
    .addOption(jsonOption())
    .addOption(urlOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck sessions alice/shop --label branch=main
  tapedeck sessions --since yesterday`,
    )
    .action(async (sources: readonly string[], options: SessionsOptions) =>
      (await import("./run.ts")).sessions(withSources(sources, options)),
    );
