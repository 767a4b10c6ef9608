import { dirname } from "node:path";
import { commandToStart } from "@tapedeck/shared/installation";
import { sentenceOf } from "../../command-error.ts";
import { printError } from "../../display/output.ts";
import { spillHome } from "../../recording/spill-home.ts";
import type { Left } from "./record-command.ts";

export function warn(line: string): void {
  printError(`tapedeck: ${line}`);
}

export function warnUnrecorded(why: unknown): void {
  warn(`this command is not recorded: ${sentenceOf(why)}`);
}

/** Says what of a command that has ended is not recorded yet, and what records it. */
export function warnOfLeft(left: Left, url: string | undefined): void {
  const why = left.reason === undefined ? "" : ` (${left.reason})`;
  if (left.waiting > 0) {
    warn(`not recorded yet${why}: the recording waits in ${left.folder} for the next ${whoTakes(left, url)}`);
  } else if (left.unread) {
    warn("not everything is recorded yet: the next `tapedeck run` records the rest of Skaffold's events");
  }
}

/** All commands look for waiting recordings in the same folder, unless a setting names another one. */
function whoTakes({ folder, to }: Left, url: string | undefined): string {
  const home = dirname(folder);
  const inHome = home === spillHome(process.env) ? "" : `TAPEDECK_SPILL=${home} `;
  if (/^(127\.|localhost:|\[::1\]:)/.test(to)) return `\`${inHome}${commandToStart("--no-demo")}\``;
  return `\`tapedeck run\` to that server, or \`${inHome}tapedeck record --waiting${url === undefined ? "" : ` --url ${url}`}\``;
}
