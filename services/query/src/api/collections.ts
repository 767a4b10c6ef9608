import { invalidArgument } from "@tapedeck/shared/errors/errors";
import type { Collection, Item } from "../views/states/collection.ts";
import type { Fold, Folds } from "../views/states/fold.ts";

/** What ReadState serves under one name: a part of a session's folded state, or rows of tables beside it. */
export type NamedCollection = { readonly name: string; readonly upstream: string; readonly fold: Fold } & (
  | { readonly itemsOf: (state: unknown) => readonly Item[] }
  | { readonly read: Collection }
);

export type Collections = ReadonlyMap<string, NamedCollection>;

export function collectionsOf(folds: Folds): Collections {
  const all = new Map<string, NamedCollection>();
  for (const [upstream, fold] of Object.entries<Fold>(folds)) {
    for (const [part, itemsOf] of Object.entries(fold.collections)) {
      const name = `${upstream}.${part}`;
      all.set(name, { name, upstream, fold, itemsOf });
    }
    for (const [part, read] of Object.entries(fold.tableCollections)) {
      const name = `${upstream}.${part}`;
      all.set(name, { name, upstream, fold, read });
    }
  }
  return all;
}

/** @throws TapedeckError invalid_argument for an unknown name */
export function collectionNamed(all: Collections, name: string): NamedCollection {
  const found = all.get(name);
  if (found !== undefined) return found;
  throw invalidArgument(`no collection "${name}": any of ${[...all.keys()].join(", ")}`, "collection");
}
