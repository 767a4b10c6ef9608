import { maskEntriesInThread } from "../../secrets/ahead/masked-apart.ts";
import type { Observing } from "../inventory/observing.ts";
import { maskAfter } from "./jobs/output-pieces.ts";
import { watchJobs } from "./jobs/watch-jobs.ts";
import { mask } from "./mask.ts";
import { watchResources } from "./resources/watch-resources.ts";

/** A Vagrant server streams only the jobs that one asks for: what jobs and things there are is concluded from looks. */
export const observing: Observing = {
  channels: ["jobs", "things"],
  mask,
  maskInThread: maskEntriesInThread("vagrant", mask),
  maskAfter,
  watch(options) {
    const jobs = watchJobs(options);
    const things = watchResources(options, jobs.runningCommand);
    const watcherOf = (channel: string) => (channel === "things" ? things : jobs);
    return {
      resume: (event) => watcherOf(event.channel).resume(event),
      connected() {
        jobs.connected();
        things.connected();
      },
      // Of things a look tells all; that the server may be another one by now is seen by the jobs.
      restarted: () => jobs.connected(),
      observe: (channel, look, at) => watcherOf(channel).observe(channel, look, at),
    };
  },
};
