import type { Looking } from "../looking.ts";
import { mask } from "./mask.ts";
import { watchJobs } from "./watch-jobs.ts";
import { watchThings } from "./watch-things.ts";

export const looking: Looking = {
  channels: ["jobs", "things"],
  mask,
  watch(options) {
    const jobs = watchJobs(options);
    const things = watchThings(options, () => undefined);
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
