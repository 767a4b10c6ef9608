import type { Observed, Observing, Watcher } from "../inventory/observing.ts";
import { maskEntriesInThread } from "../mask-thread/thread-masks.ts";
import { HostWatcher } from "./host-watcher.ts";
import { mask } from "./mask.ts";
import { maskAfter } from "./texts/masked-lines.ts";
import { TextsWatcher } from "./texts/texts-watcher.ts";

/** rkt has no events: what happens on a host is concluded from its lists, which are polled, and from logs. */
export const observing: Observing = {
  channels: ["pods", "images", "logs"],
  mask,
  maskAfter,
  maskInThread: maskEntriesInThread("rkt", mask),
  watch(options) {
    const host = new HostWatcher(options);
    const texts = new TextsWatcher(options);
    const watcherOf = (channel: string): Watcher<Observed> => (channel === "logs" ? texts : host);
    return {
      resume: (event) => watcherOf(event.channel).resume(event),
      connected() {
        host.connected();
        texts.connected();
      },
      observe(channel, observation, at) {
        // The pods show whose logs have ended, which has no outcome of its own.
        if (channel === "pods") texts.observe(channel, observation, at);
        return watcherOf(channel).observe(channel, observation, at);
      },
    };
  },
};
