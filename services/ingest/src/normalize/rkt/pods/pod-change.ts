import type { Pod } from "@tapedeck/proto/rkt/v1alpha/rkt";
import type { Moment } from "@tapedeck/shared/time/moment";
import type { Last, Now } from "./pod-table.ts";

/** When something was seen, and the last time before that it would have been seen otherwise. */
export type Times = { readonly at: Moment; readonly after: Moment | undefined };

export type PodChange = Times & {
  readonly last: Last;
  /** As accepted; undefined for a new one. */
  readonly before: Pod | undefined;
  readonly to: Now;
  /** As accepted now; of an absent pod what was known last. */
  readonly now: Pod;
};
