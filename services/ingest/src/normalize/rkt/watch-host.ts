import type { Observed, Watcher, WatchOptions } from "../inventory/observing.ts";
import { extinction, type Kind } from "./extinction.ts";
import { images } from "./pods/images.ts";
import { pods } from "./pods/pods.ts";
import { type ThingsWatcher, watchThings } from "./watch-inventory.ts";

/** Ten minutes: an operator has seen by then that a directory is not mounted. */
const extinctionHold = 600_000;

/**
 * Watches the pods and the images of a host: pod-table.ts has what a change of state tells, pod-doubts.ts what one answer
 * does not prove. Setting `extinctionHold`: ms for which it is not believed that everything is gone at once.
 */
export function watchHost(
  { mask, settings, frameBytes }: WatchOptions,
  { describeAfter = 1_000 }: { readonly describeAfter?: number } = {},
): Watcher<Observed> {
  const told = settings.extinctionHold ?? "";
  const gone = extinction(/^\d+$/.test(told) ? Number(told) : extinctionHold);
  const options = { mask, extinction: gone, describeAfter, ...(frameBytes !== undefined && { frameBytes }) };
  const channels: Readonly<Record<Kind, ThingsWatcher>> = {
    pods: watchThings(pods, options),
    images: watchThings(images, options),
  };
  const watcherOf = (channel: string) => (channel === "pods" || channel === "images" ? channels[channel] : undefined);
  return {
    resume: (event) => watcherOf(event.channel)?.resume(event),
    connected() {
      gone.connected({ pods: channels.pods.knowsSome(), images: channels.images.knowsSome() });
      channels.pods.connected();
      channels.images.connected();
    },
    observe: (channel, look, at) => watcherOf(channel)?.observe(look, at) ?? [],
  };
}
