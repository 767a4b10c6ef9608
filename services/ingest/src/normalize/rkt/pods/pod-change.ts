import type { Pod } from "@tapedeck/proto/rkt/v1alpha/rkt";
import type { Times } from "../../inventory/inventory-rules.ts";
import type { Last, Now } from "./pod-table.ts";

export type PodChange = Times & {
  readonly last: Last;
  /** As accepted; undefined for a new one. */
  readonly before: Pod | undefined;
  readonly to: Now;
  /** As accepted now; of an absent pod what was known last. */
  readonly now: Pod;
};
