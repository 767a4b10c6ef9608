import type { Base64 } from "../states/base64.ts";
import { noThings, type Things } from "./things.ts";

/**
 * Raised whenever the same events fold to another state, or the state has another shape: snapshots of another version
 * are of no use.
 */
export const foldVersion = 1;

/**
 * What the events of one session say about a Vagrant server's things; its jobs are rows of their own (jobs.ts). Plain
 * JSON: `JSON.parse(JSON.stringify(state))` is the state.
 */
export type VagrantState = {
  readonly foldVersion: typeof foldVersion;
  readonly things: Things;
  /** hashicorp.vagrant.GetVersionInfoResponse, told last; null: not yet. */
  readonly version: Base64 | null;
};

export const initialState: VagrantState = { foldVersion, things: noThings, version: null };
