import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Observation } from "@tapedeck/proto/tapedeck/v1/observation";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import type { Observed, Watcher, WatcherOptions } from "../inventory/observing.ts";
import { Extinction } from "./extinction.ts";
import { HostChannel } from "./host-channel.ts";
import { type ImageMemory, images } from "./pods/images.ts";
import { type PodMemory, pods } from "./pods/pods.ts";

/** Ten minutes: an operator has noticed by then that a directory is not mounted. */
const defaultExtinctionHold = 600_000;

/**
 * Observes the pods and the images of a host: pod-table.ts has what a change of state reports, pod-doubts.ts what one
 * answer does not prove. Setting `extinctionHold`: ms for which it is not believed that everything is gone at once.
 */
export class HostWatcher implements Watcher<Observed> {
  readonly #extinction: Extinction;
  readonly #pods: HostChannel<PodMemory>;
  readonly #images: HostChannel<ImageMemory>;

  constructor(
    { mask, settings, frameBytes }: WatcherOptions,
    { describeAfter = 1_000 }: { readonly describeAfter?: number } = {},
  ) {
    const hold = settings.extinctionHold ?? "";
    this.#extinction = new Extinction(/^\d+$/.test(hold) ? Number(hold) : defaultExtinctionHold);
    const options = {
      mask,
      extinction: this.#extinction,
      describeAfter,
      ...(frameBytes !== undefined && { frameBytes }),
    };
    this.#pods = new HostChannel(pods, options);
    this.#images = new HostChannel(images, options);
  }

  resume(event: Event): void {
    this.#channel(event.channel)?.resume(event);
  }

  connected(): void {
    this.#extinction.connected({ pods: this.#pods.knowsSome, images: this.#images.knowsSome });
    this.#pods.connected();
    this.#images.connected();
  }

  observe(channel: string, observation: Observation, at: Timestamp): Observed {
    return this.#channel(channel)?.observe(observation, at) ?? [];
  }

  #channel(name: string): Pick<HostChannel<unknown>, "resume" | "observe"> | undefined {
    if (name === "pods") return this.#pods;
    return name === "images" ? this.#images : undefined;
  }
}
