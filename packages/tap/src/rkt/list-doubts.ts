import { status } from "@grpc/grpc-js";
import { ListPodsResponse, type Pod, PodState } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { imageEntries } from "@tapedeck/shared/rkt/entries";

/**
 * What one list makes doubtful about the one before: rkt leaves out what it can't read just now, and an exit code of 0
 * may only mean that a pod was on the move (docs/upstreams/rkt.md#races). It is asked for by name at once, before it is
 * gone. Whole lists only, in their order, over all connections to the same host.
 */
export type Doubts = {
  /** Ids to ask for, the most useful first. Of bytes that can't be read nothing is doubted or kept. */
  readonly see: (list: Uint8Array) => readonly string[];
  /** The list is the one before: what of it is to be asked for all the same. */
  readonly again: () => readonly string[];
  /** What came of asking for one. */
  readonly answered: (id: string, answer: { readonly code: number; readonly message: string }) => void;
  /** What comes is another host's. */
  readonly forget: () => void;
};

export type PodDoubts = Doubts & {
  /** As listed last; undefined before the first list. */
  readonly listed: () => readonly Pod[] | undefined;
};

export function podDoubts(): PodDoubts {
  let before: readonly Pod[] | undefined;
  /** Not listed, but there: as long as their files can't be read, only their names tell. */
  const unlisted = new Set<string>();
  return {
    see(list) {
      const pods = podsIn(list);
      if (pods === undefined) return [];
      const states = new Map(before?.map(({ id, state }) => [id, state]));
      const ids = new Set(pods.map(({ id }) => id));
      before = pods;
      for (const id of ids) unlisted.delete(id);
      const ended = pods.filter((pod) => isPerhapsZero(pod) && states.get(pod.id) !== PodState.POD_STATE_EXITED);
      const missing = [...states.keys()].filter((id) => !ids.has(id));
      return [...unlisted, ...missing, ...ended.map(({ id }) => id)];
    },
    again: () => [...unlisted],
    answered(id, { code, message }) {
      const isThere = code === status.OK || (code === status.UNKNOWN && message === "unable to get pod");
      if (isThere && before?.every((pod) => pod.id !== id)) unlisted.add(id);
      else unlisted.delete(id);
    },
    forget: () => {
      before = undefined;
      unlisted.clear();
    },
    listed: () => before,
  };
}

export function imageDoubts(): Doubts {
  let before: readonly string[] = [];
  return {
    see(list) {
      const images = imageEntries(list)?.map(({ id }) => id);
      if (images === undefined) return [];
      const listed = new Set(images);
      const missing = before.filter((id) => !listed.has(id));
      before = images;
      return missing;
    },
    again: () => [],
    answered: () => {},
    forget: () => {
      before = [];
    },
  };
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
