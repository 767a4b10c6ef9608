import { inMessages } from "../../display/counted.ts";
import { print } from "../../display/output.ts";
import { remoteMaintenance } from "../../maintain/remote.ts";
import { announceTapedeck } from "../../maintain/which-tapedeck.ts";
import { Progress, type ProgressTo } from "../../progress.ts";

export type RebuildOptions = { readonly data: string; readonly url?: string; readonly here?: boolean };

/** Rebuilds the tables of this machine's Tapedeck server, or of another one through its gateway. */
export async function rebuildTables(options: RebuildOptions, progressTo: ProgressTo = {}): Promise<void> {
  if (announceTapedeck("rebuild", options)) return rebuildElsewhere(options.url, progressTo);
  // It needs the servers' code, which an installed CLI has in a package of its own.
  const { rebuildHere } = await import("./here.ts");
  return rebuildHere(options.data, progressTo);
}

async function rebuildElsewhere(url: string | undefined, progressTo: ProgressTo): Promise<void> {
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  const started = performance.now();
  let all = { messages: 0, events: 0 };
  using progress = new Progress({ what: "rebuild", unit: "messages", ...progressTo });
  for await (const { done, ...now } of remoteMaintenance(url).rebuild(stop.signal)) {
    all = now;
    progress.reached(done, now.messages);
  }
  progress[Symbol.dispose]();
  const seconds = ((performance.now() - started) / 1_000).toFixed(1);
  if (stop.signal.aborted) print("stopped: the tables are unchanged, and the next rebuild continues from here");
  else print(`rebuilt the tables from ${inMessages(all)} (${seconds} s)`);
}
