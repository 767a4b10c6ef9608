import { Command } from "commander";
import { jsonOption, urlOption } from "../options.ts";
import type { CompareOptions } from "./run.ts";

export const compareCommand = () =>
  new Command("compare")
    .summary("show what differs between two loops, sessions or sources")
    .description(`Shows what differs between two sides, starting with what may explain a failure: errors, versions, configuration, labels, \
resources, ports, durations. A side is a loop as \`tapedeck loops\` lists it, a session, or a source (developer/project), which \
stands for its newest finished loop. A session or a source may be followed by \`@\` and a time or a position.`)
    .argument("<left>", "a loop, a session or a source")
    .argument("<right>", "the side to compare it with")
    .addOption(jsonOption())
    .addOption(urlOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck compare alice/shop bob/shop
  tapedeck compare alice/shop alice/shop@yesterday`,
    )
    .action(async (left: string, right: string, options: CompareOptions) =>
      (await import("./run.ts")).compare(left, right, options),
    );
