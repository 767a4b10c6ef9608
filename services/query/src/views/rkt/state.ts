import type { Base64 } from "../states/base64.ts";
import { emptyInventory, type HostInventory } from "./inventory.ts";

/**
 * Raised whenever the same events fold to another state, or the state has another shape: snapshots of another version
 * are not used.
 */
export const foldVersion = 1;

/**
 * A host's state from the events of one session, without what is gone from it. Plain JSON:
 * `JSON.parse(JSON.stringify(state))` is the state.
 */
export type RktState = {
  readonly foldVersion: typeof foldVersion;
  /** v1alpha.Pod with its manifest, as accepted, by its id. */
  readonly pods: HostInventory;
  /** v1alpha.Image, by its id. */
  readonly images: HostInventory;
  /** The last reported v1alpha.GetInfoResponse; null: none yet. */
  readonly info: Base64 | null;
};

export const initialState: RktState = { foldVersion, pods: emptyInventory, images: emptyInventory, info: null };
