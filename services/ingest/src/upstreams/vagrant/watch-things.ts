import type { Watcher, WatchOptions } from "../looking.ts";

/** Watches channel "things". `runningCommand`: the command job that runs on a project (by resource_id) now. */
export function watchThings(_: WatchOptions, __: (project: string) => string | undefined): Watcher {
  return { resume: () => {}, connected: () => {}, look: () => [] };
}
