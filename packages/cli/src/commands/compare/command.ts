import { Command } from "commander";
import { jsonOption, urlOption } from "../options.ts";
import type { CompareOptions } from "./run.ts";

export const compareCommand = () =>
  new Command("compare")
    .summary("show what differs between two loops, sessions or sources")
    .description(`Shows what differs between two sides, what may explain a failure first: errors, versions, configuration, labels, \
resources, ports, durations. A side is a loop as \`tapedeck loops\` lists it, a session, or a source (developer/project), which \
stands for its newest finished loop. Behind \`@\` a session or a source may have a time or a position.`)
    .argument("<left>", "a loop, a session or a source")
    .argument("<right>", "the other one")
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
