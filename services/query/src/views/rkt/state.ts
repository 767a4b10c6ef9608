import type { Base64 } from "../states/base64.ts";
import { type Entries, noEntries } from "./entries.ts";

/**
 * Raised whenever the same events fold to another state, or the state has another shape: snapshots of another version
 * are of no use.
 */
export const foldVersion = 1;

/**
 * What the events of one session say about a host. Plain JSON: `JSON.parse(JSON.stringify(state))` is the state. What is
 * gone from the host is gone from here.
 */
export type RktState = {
  readonly foldVersion: typeof foldVersion;
  /** v1alpha.Pod with its manifest, as accepted, by its id. */
  readonly pods: Entries;
  /** v1alpha.Image, by its id. */
  readonly images: Entries;
  /** v1alpha.GetInfoResponse, told last; null: not yet. */
  readonly info: Base64 | null;
};

export const initialState: RktState = { foldVersion, pods: noEntries, images: noEntries, info: null };
