import { maskEntriesInThread } from "../../secrets/ahead/masked-apart.ts";
import type { Observed, Observing, Watcher } from "../inventory/observing.ts";
import { mask } from "./mask.ts";
import { maskAfter } from "./texts/masked-lines.ts";
import { watchTexts } from "./texts/watch-texts.ts";
import { watchHost } from "./watch-host.ts";

/** rkt has no events: what happens on a host is concluded from what its lists say again and again, and from logs. */
export const observing: Observing = {
  channels: ["pods", "images", "logs"],
  mask,
  maskAfter,
  maskInThread: maskEntriesInThread("rkt", mask),
  watch(options) {
    const host = watchHost(options);
    const texts = watchTexts(options);
    const watcherOf = (channel: string): Watcher<Observed> => (channel === "logs" ? texts : host);
    return {
      resume: (event) => watcherOf(event.channel).resume(event),
      connected() {
        host.connected();
        texts.connected();
      },
      observe(channel, look, at) {
        // By the pods it is known whose logs can't go on; that tells nothing by itself.
        if (channel === "pods") texts.observe(channel, look, at);
        return watcherOf(channel).observe(channel, look, at);
      },
    };
  },
};
