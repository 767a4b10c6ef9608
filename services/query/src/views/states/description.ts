/**
 * A full list (inventory.described) may come in several parts, which follow each other. Until the last part has come, the
 * state keeps which keys the earlier parts listed.
 */
export type PartialDescription = {
  /** The next part. */
  readonly part: number;
  readonly parts: number;
  readonly listed: readonly string[];
};

/** `describing`: a description of which parts are still to come; null: none. */
type Describable = { readonly describing: PartialDescription | null };

/** Any other event of the channel interrupts a description. */
export function withoutDescription<Described extends Describable>(described: Described): Described {
  return described.describing === null ? described : { ...described, describing: null };
}

/** The keys that the parts before this one listed; undefined: a part before it is missing. */
export function listedBefore(
  { describing }: Describable,
  { part, parts }: Pick<PartialDescription, "part" | "parts">,
): readonly string[] | undefined {
  if (part === 0) return [];
  return describing?.part === part && describing.parts === parts ? describing.listed : undefined;
}
