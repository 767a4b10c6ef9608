import { plural } from "@tapedeck/client/lanes/format";
import { CommandError } from "../../command-error.ts";
import { print, printJson } from "../../display/output.ts";
import { shortSource } from "../../display/source-name.ts";
import type { Erasing } from "../../maintain/remote.ts";
import { Progress, type ProgressTo } from "../../progress.ts";

export type ShowOptions = {
  readonly session: string;
  readonly json?: boolean;
  readonly signal: AbortSignal;
} & ProgressTo;

/** Shows how far an erasure is until it is over. It is the server's work: Ctrl-C ends only this. */
export async function showErasure(
  erasing: AsyncIterable<Erasing>,
  { session, json = false, signal, ...progressTo }: ShowOptions,
): Promise<void> {
  let last: Erasing | undefined;
  {
    using progress = new Progress({ what: "erase", unit: "events", ...progressTo });
    for await (const now of erasing) {
      last = now;
      if (now.events !== undefined) progress.reached(now.removed, Math.max(1, now.events));
    }
  }
  const { source = "", state = "removing", events = 0, removed = 0, exports } = last ?? {};
  if (state !== "done") {
    const far = last === undefined ? "" : ` (removed ${removed} of ${plural(events, "event")}, and none can be read)`;
    const goesOn = `the server continues to erase session ${session}${far}: the same command shows the progress.`;
    throw new CommandError(signal.aborted ? `stopped watching; ${goesOn}` : `the connection was lost; ${goesOn}`);
  }
  if (json) {
    printJson({ source, session, events, ...(exports && { exports }) });
    return;
  }
  print(`erased session ${session} of ${shortSource(source)}: ${plural(events, "event")}`);
  for (const { time, who, kind } of exports ?? []) {
    print(`an earlier export still contains it: ${time} by ${kind} ${who}`);
  }
}
