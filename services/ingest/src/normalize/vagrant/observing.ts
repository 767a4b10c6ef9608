import type { Observing } from "../inventory/observing.ts";
import { maskEntriesInThread } from "../mask-thread/thread-masks.ts";
import { JobsWatcher } from "./jobs/jobs-watcher.ts";
import { maskAfter } from "./jobs/output-pieces.ts";
import { mask } from "./mask.ts";
import { ResourcesWatcher } from "./resources/resources-watcher.ts";

/** A Vagrant server streams only the jobs that a client asks for: its other jobs and its resources are polled. */
export const observing: Observing = {
  channels: ["jobs", "resources"],
  mask,
  maskInThread: maskEntriesInThread("vagrant", mask),
  maskAfter,
  watch(options) {
    const jobs = new JobsWatcher(options);
    const resources = new ResourcesWatcher(options, (project) => jobs.runningCommand(project));
    const watcherOf = (channel: string) => (channel === "resources" ? resources : jobs);
    return {
      resume: (event) => watcherOf(event.channel).resume(event),
      connected() {
        jobs.connected();
        resources.connected();
      },
      // One answer is proof for resources. Only the jobs show that the server may be another one by now.
      restarted: () => jobs.connected(),
      observe: (channel, observation, at) => watcherOf(channel).observe(channel, observation, at),
    };
  },
};
