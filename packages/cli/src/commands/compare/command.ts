import { Command } from "commander";
import { jsonOption, urlOption } from "../options.ts";
import type { CompareOptions } from "./run.ts";

export const compareCommand = () =>
  new Command("compare")
    .summary("show what differs between two loops, sessions or sources")
    .description(`Shows what differs between two sides, most likely explanations of a failure first. A side is a loop as \
\`tapedeck loops\` lists it, a session, or a source (developer/project, or a part of it that no other has), which means its \
newest finished loop. \`@\` and a time or position may follow a session or source. The sides can be of two developers where \`privacy.compareDevelopers\` is on.`)
    .argument("<left>", "a loop, a session or a source")
    .argument("<right>", "the side to compare it with")
    .addOption(jsonOption())
    .addOption(urlOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck compare alice/shop bob/shop
  tapedeck compare alice/shop#54 alice/shop#53
  tapedeck compare alice/shop alice/shop@yesterday`,
    )
    .action(async (left: string, right: string, options: CompareOptions) =>
      (await import("./run.ts")).compare(left, right, options),
    );
