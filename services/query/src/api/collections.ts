import { invalidArgument } from "@tapedeck/shared/errors/errors";
import type { Collection, Item } from "../views/states/collection.ts";
import type { Fold, Folds } from "../views/states/fold.ts";
import { foldFrom, nearestState } from "./state-at.ts";

export type UpstreamCollection = Collection & { readonly upstream: string };

/** @throws TapedeckError invalid_argument for an unknown name */
export function collectionOf(folds: Folds, name: string): UpstreamCollection {
  const known = collectionsOf(folds);
  const found = known.get(name);
  if (found !== undefined) return found;
  throw invalidArgument(`no collection "${name}": any of ${[...known.keys()].join(", ")}`, "collection");
}

function collectionsOf(folds: Folds): ReadonlyMap<string, UpstreamCollection> {
  const all = new Map<string, UpstreamCollection>();
  for (const [upstream, fold] of Object.entries<Fold>(folds)) {
    for (const [name, itemsOf] of Object.entries(fold.collections)) {
      all.set(`${upstream}.${name}`, { upstream, ...stateCollection(fold, itemsOf) });
    }
    for (const [name, collection] of Object.entries(fold.tableCollections)) {
      all.set(`${upstream}.${name}`, { upstream, ...collection });
    }
  }
  return all;
}

/** A part of a session's folded state. */
function stateCollection(fold: Fold, itemsOf: (state: unknown) => readonly Item[]): Collection {
  return {
    async open(tx, { session, offset, keyPrefix }, { log }) {
      const base = session && (await nearestState(tx, fold, session, offset));
      return async (signal) => {
        const state = session && base ? await foldFrom(log, fold, session, base, signal) : fold.initial;
        return itemsOf(state).filter(({ key }) => key.startsWith(keyPrefix));
      };
    },
  };
}
