import type { Looking, Watcher } from "../looking.ts";
import { mask } from "./mask.ts";
import { watchJobs } from "./watch-jobs.ts";
import { watchThings } from "./watch-things.ts";

type JobsWatcher = Watcher & { readonly runningCommand?: (project: string) => string | undefined };

/** A Vagrant server streams only the jobs that one asks for: what jobs and things there are is concluded from looks. */
export const looking: Looking = {
  channels: ["jobs", "things"],
  mask,
  watch(options) {
    const jobs: JobsWatcher = watchJobs(options);
    const things = watchThings(options, (project) => jobs.runningCommand?.(project));
    const watcherOf = (channel: string) => (channel === "things" ? things : jobs);
    return {
      resume: (event) => watcherOf(event.channel).resume(event),
      connected() {
        jobs.connected();
        things.connected();
      },
      look: (channel, look, at) => watcherOf(channel).look(channel, look, at),
    };
  },
};
