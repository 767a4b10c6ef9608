import type { DifferenceKind } from "../schemas/comparison.ts";
import type { Found } from "./side-summary.ts";

export type Weighed = {
  readonly kind: DifferenceKind;
  readonly subject: string;
  readonly text: string;
  readonly left: Found | undefined;
  readonly right: Found | undefined;
  /** Further evidence, such as lines of output. */
  readonly more?: readonly (Found & { readonly side: "left" | "right" })[];
  /** How much it explains. Only their order means something. */
  readonly points: number;
};

/** A fact that is the same on both sides. */
export type Same = { readonly kind: DifferenceKind; readonly subject: string; readonly value: string };

export type Compared = { readonly differences: readonly Weighed[]; readonly same: readonly Same[] };

export const nothing: Compared = { differences: [], same: [] };
