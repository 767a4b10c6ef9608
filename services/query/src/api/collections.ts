import { invalidArgument } from "@tapedeck/shared/errors/errors";
import type { Collection } from "../views/states/collection.ts";
import type { Fold, Folds } from "../views/states/fold.ts";

export type NamedCollection = Collection<unknown> & {
  readonly name: string;
  readonly upstream: string;
  readonly fold: Fold;
};

export type Collections = ReadonlyMap<string, NamedCollection>;

export function collectionsOf(folds: Folds): Collections {
  const all = new Map<string, NamedCollection>();
  for (const [upstream, fold] of Object.entries<Fold>(folds)) {
    for (const [part, collection] of Object.entries(fold.collections)) {
      const name = `${upstream}.${part}`;
      all.set(name, { ...collection, name, upstream, fold });
    }
  }
  return all;
}

/** @throws TapedeckError invalid_argument for an unknown name */
export function collectionNamed(all: Collections, name: string): NamedCollection {
  const found = all.get(name);
  if (found !== undefined) return found;
  throw invalidArgument(`there is no collection "${name}": use one of ${[...all.keys()].join(", ")}`, "collection");
}
