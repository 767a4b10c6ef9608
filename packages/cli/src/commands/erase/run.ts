import { CommandError } from "../../command-error.ts";
import { print, printJson } from "../../display/output.ts";
import { shortSource } from "../../display/source-name.ts";
import { remoteMaintenance } from "../../maintain/remote.ts";
import { announceTapedeck } from "../../maintain/which-tapedeck.ts";
import { confirm } from "./confirm.ts";
import type { EraseOptions } from "./options.ts";

/** Erases a session on this machine's Tapedeck server, or through another one's gateway. */
export async function erase(options: EraseOptions): Promise<void> {
  if (announceTapedeck("erase", options)) return eraseElsewhere(options);
  // It needs the servers' code, which an installed CLI has in a package of its own.
  const { eraseHere } = await import("./here.ts");
  return eraseHere(options);
}

async function eraseElsewhere({ url, session, yes, json }: EraseOptions): Promise<void> {
  if (!yes) await confirm(`Erase session ${session}? This can't be undone. [y/N] `);
  const stop = new AbortController();
  process.once("SIGINT", () => stop.abort());
  let last = { source: "", events: 0, removed: 0 };
  for await (const erasing of remoteMaintenance(url).erase(session, stop.signal)) last = erasing;
  const { source, events, removed } = last;
  if (stop.signal.aborted)
    throw new CommandError(`stopped after ${removed} of ${events} events: run it again to continue.`);
  if (json) printJson({ source, session, events });
  else print(`erased session ${session} of ${shortSource(source)}: ${events} events`);
}
