import { status } from "@grpc/grpc-js";
import { ListPodsResponse, type Pod, PodState } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { imageEntries } from "@tapedeck/shared/rkt/entries";

/**
 * What one list makes doubtful about the one before. rkt omits what it can't read at the moment, and an exit code of 0 may
 * only mean that a pod was being moved
 * (docs/upstreams/rkt.md#races). A doubtful item is inspected by its id at once, before it is gone. Takes whole
 * lists only, in their order, over all connections to the same host.
 */
export type Doubts = {
  /** Gives the ids to inspect, the most useful first. A list that can't be read is ignored. */
  compare(list: Uint8Array): readonly string[];
  /** Gives the ids to inspect again when the list has not changed. */
  unresolved(): readonly string[];
  /** Takes the result of an inspection. */
  resolve(id: string, result: { readonly code: number; readonly message: string }): void;
  /** Gives the ids of what may change at any time, by the last list: inspected one by one while no list comes. */
  changeable(): readonly string[];
  /** The next list is another host's. */
  reset(): void;
};

/** The pods of the last list about which a request for the single pod decides. */
export class PodDoubts implements Doubts {
  #listed: readonly Pod[] | undefined;
  /** Pods that exist and are not listed: only their names show as long as their files can't be read. */
  readonly #unlisted = new Set<string>();

  /** The last list; undefined before the first. */
  get listed(): readonly Pod[] | undefined {
    return this.#listed;
  }

  compare(list: Uint8Array): readonly string[] {
    const pods = podsIn(list);
    if (pods === undefined) return [];
    const states = new Map(this.#listed?.map(({ id, state }) => [id, state]));
    const ids = new Set(pods.map(({ id }) => id));
    this.#listed = pods;
    for (const id of ids) this.#unlisted.delete(id);
    const ended = pods.filter((pod) => isPerhapsZero(pod) && states.get(pod.id) !== PodState.POD_STATE_EXITED);
    const missing = [...states.keys()].filter((id) => !ids.has(id));
    return [...this.#unlisted, ...missing, ...ended.map(({ id }) => id)];
  }

  unresolved(): readonly string[] {
    return [...this.#unlisted];
  }

  resolve(id: string, { code, message }: { readonly code: number; readonly message: string }): void {
    const exists = code === status.OK || (code === status.UNKNOWN && message === "unable to get pod");
    if (exists && this.#listed?.every((pod) => pod.id !== id)) this.#unlisted.add(id);
    else this.#unlisted.delete(id);
  }

  changeable(): readonly string[] {
    return (this.#listed ?? []).flatMap(({ id, state }) => (state === PodState.POD_STATE_RUNNING ? [id] : []));
  }

  reset(): void {
    this.#listed = undefined;
    this.#unlisted.clear();
  }
}

/** The images of the last list about which a request for the single image decides. */
export class ImageDoubts implements Doubts {
  #listed: readonly string[] = [];

  compare(list: Uint8Array): readonly string[] {
    const images = imageEntries(list)?.map(({ id }) => id);
    if (images === undefined) return [];
    const ids = new Set(images);
    const missing = this.#listed.filter((id) => !ids.has(id));
    this.#listed = images;
    return missing;
  }

  unresolved(): readonly string[] {
    return [];
  }

  resolve(): void {}

  /** An image never changes. */
  changeable(): readonly string[] {
    return [];
  }

  reset(): void {
    this.#listed = [];
  }
}

function isPerhapsZero({ state, apps }: Pod): boolean {
  return state === PodState.POD_STATE_EXITED && apps.some(({ exit_code }) => exit_code === 0);
}

function podsIn(list: Uint8Array): readonly Pod[] | undefined {
  try {
    return ListPodsResponse.decode(list).pods;
  } catch {
    return undefined;
  }
}
