import type { Base64 } from "../states/base64.ts";
import { noResources, type Resources } from "./resources.ts";

/**
 * Raised whenever the same events fold to another state, or the state has another shape: snapshots of another version
 * are not used.
 */
export const foldVersion = 1;

/**
 * A Vagrant server's resources from the events of one session. Its jobs are not part of it: they have rows of their own
 * (jobs/jobs.ts). Plain JSON: `JSON.parse(JSON.stringify(state))` is the state.
 */
export type VagrantState = {
  readonly foldVersion: typeof foldVersion;
  readonly resources: Resources;
  /** The last reported hashicorp.vagrant.GetVersionInfoResponse; null: none yet. */
  readonly version: Base64 | null;
};

export const initialState: VagrantState = { foldVersion, resources: noResources, version: null };
