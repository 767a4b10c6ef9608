import { CommandError } from "../../command-error.ts";
import { confirm } from "../../confirm.ts";
import { remoteMaintenance } from "../../maintain/remote.ts";
import { announceTapedeck } from "../../maintain/which-tapedeck.ts";
import type { EraseOptions } from "./options.ts";
import { showErasure } from "./show.ts";
import { showDeveloperErasure } from "./show-developer.ts";

/** Erases a session or a developer on this machine's Tapedeck server, or through another one's gateway. */
export async function erase(options: EraseOptions): Promise<void> {
  const { session, developer } = options;
  if ((session === undefined) === (developer === undefined)) {
    throw new CommandError("give one of --session <ulid> and --developer <name>.");
  }
  if (announceTapedeck("erase", options)) return eraseElsewhere(options);
  // It needs the servers' code, which an installed CLI has in a package of its own.
  const { eraseDeveloperHere, eraseHere } = await import("./here.ts");
  if (developer !== undefined) return eraseDeveloperHere(developer, options);
  if (session !== undefined) return eraseHere(session, options);
}

async function eraseElsewhere(options: EraseOptions): Promise<void> {
  const { url, session, developer, yes } = options;
  const what = session === undefined ? `everything of ${developer}` : `session ${session}`;
  if (!yes) await confirm(`Erase ${what}? This can't be undone. [y/N] `, "erased");
  const stop = new AbortController();
  process.once("SIGINT", () => stop.abort());
  const { signal } = stop;
  const server = remoteMaintenance(url);
  if (session !== undefined) await showErasure(server.erase(session, signal), { ...options, session, signal });
  else if (developer !== undefined)
    await showDeveloperErasure(server.eraseDeveloper(developer, signal), { ...options, developer, signal });
}
