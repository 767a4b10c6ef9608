import { confirm } from "../../confirm.ts";
import { remoteMaintenance } from "../../maintain/remote.ts";
import { announceTapedeck } from "../../maintain/which-tapedeck.ts";
import type { EraseOptions } from "./options.ts";
import { showErasure } from "./show.ts";

/** Erases a session on this machine's Tapedeck server, or through another one's gateway. */
export async function erase(options: EraseOptions): Promise<void> {
  if (announceTapedeck("erase", options)) return eraseElsewhere(options);
  // It needs the servers' code, which an installed CLI has in a package of its own.
  const { eraseHere } = await import("./here.ts");
  return eraseHere(options);
}

async function eraseElsewhere(options: EraseOptions): Promise<void> {
  const { url, session, yes } = options;
  if (!yes) await confirm(`Erase session ${session}? This can't be undone. [y/N] `, "erased");
  const stop = new AbortController();
  process.once("SIGINT", () => stop.abort());
  await showErasure(remoteMaintenance(url).erase(session, stop.signal), { ...options, signal: stop.signal });
}
