import type { ListContext } from "./list-request.ts";
import type { ParametersOf, parameters } from "./parameters.ts";

/** A page of a list in the HTTP API: newest first. */
export type Page<Item> = { readonly items: readonly Item[]; readonly nextPage?: string; readonly position: string };

export type List<Name extends keyof typeof parameters, Item> = (
  context: ListContext,
  parameters: ParametersOf<Name>,
) => Promise<Page<Item>>;
