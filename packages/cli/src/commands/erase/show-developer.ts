import { plural } from "@tapedeck/client/lanes/format";
import { CommandError } from "../../command-error.ts";
import { coloured } from "../../display/colour.ts";
import { print, printError, printJson } from "../../display/output.ts";
import type { ErasingDeveloper } from "../../maintain/remote.ts";
import { Progress, type ProgressTo } from "../../progress.ts";

export type ShowDeveloperOptions = {
  readonly developer: string;
  readonly json?: boolean;
  readonly signal: AbortSignal;
} & ProgressTo;

/** Shows how far the erasure of a developer is until it is over. It is the server's work: Ctrl-C ends only this. */
export async function showDeveloperErasure(
  erasing: AsyncIterable<ErasingDeveloper>,
  { developer, json = false, signal, ...progressTo }: ShowDeveloperOptions,
): Promise<void> {
  let last: ErasingDeveloper | undefined;
  {
    using progress = new Progress({ what: "erase", unit: "sessions", ...progressTo });
    for await (const now of erasing) {
      if (now.waitsFor && now.waitsFor !== last?.waitsFor) printError(`waiting for ${now.waitsFor}`);
      last = now;
      progress.reached(now.erased, Math.max(1, now.sessions));
    }
  }
  const { state = "removing", sessions = 0, erased = 0, exports, tokens } = last ?? {};
  if (state !== "done") {
    const why = signal.aborted ? "stopped watching" : "the connection was lost";
    const far = `erased ${erased} of ${plural(sessions, "session")}`;
    throw new CommandError(`${why}; the server continues to erase ${developer} (${far}): the same command shows it.`);
  }
  if (json) {
    printJson({ developer, sessions, exports, tokens });
    return;
  }
  print(`erased ${developer}: ${plural(sessions, "session")}`);
  for (const { time, who, kind } of exports ?? [])
    print(`an earlier export still contains some: ${time} by ${kind} ${who}`);
  for (const { id, name } of tokens ?? []) {
    print(
      coloured("yellow", `the token ${id} (${name}) still records as ${developer}: \`tapedeck token revoke ${id}\``),
    );
  }
}
