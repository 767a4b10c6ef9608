import type { Pod } from "@tapedeck/proto/rkt/v1alpha/rkt";
import type { Times } from "../../inventory/inventory-rules.ts";
import type { Last, PodNow } from "./pod-table.ts";

export type PodChange = Times & {
  readonly last: Last;
  /** The pod as accepted last; undefined for a new one. */
  readonly before: Pod | undefined;
  readonly to: PodNow;
  /** The pod as accepted now; for an absent pod, as known last. */
  readonly now: Pod;
};
