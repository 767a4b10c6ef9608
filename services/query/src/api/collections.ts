import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { Tx } from "../db/database.ts";
import type { Fold, Item } from "../views/states/fold.ts";
import type { ApiDeps } from "./deps.ts";
import { readJobSpans } from "./read-job-spans.ts";
import { readJobs } from "./read-jobs.ts";
import type { ReadPlace } from "./read-place.ts";
import { foldFrom, nearestState } from "./state-at.ts";

/** What ReadState serves under one name. */
export type Collection = {
  readonly upstream: string;
  /** Looks up, in the transaction that found the place, what reading it afterwards takes. */
  readonly open: (tx: Tx, place: ReadPlace) => Promise<ReadItems>;
};

export type ReadItems = (signal: AbortSignal) => Promise<Iterable<Item> | AsyncIterable<Item>>;

/** @throws TapedeckError invalid_argument for a name that nothing has */
export function collectionOf(deps: ApiDeps, name: string): Collection {
  const found = new Map(collections(deps)).get(name);
  if (found !== undefined) return found;
  const names = collections(deps).map(([known]) => known);
  throw new TapedeckError("invalid_argument", `no collection "${name}": any of ${names.join(", ")}`, {
    field: "collection",
  });
}

function collections(deps: ApiDeps): readonly (readonly [string, Collection])[] {
  const states = Object.entries<Fold>(deps.folds).flatMap(([upstream, fold]) =>
    Object.entries(fold.collections).map(
      ([part, itemsOf]) => [`${upstream}.${part}`, ofState(deps, upstream, fold, itemsOf)] as const,
    ),
  );
  return [...states, ["vagrant.jobs", jobs(deps)], ["vagrant.job_spans", jobSpans]];
}

/** A part of a session's folded state. */
function ofState(
  { log }: ApiDeps,
  upstream: string,
  fold: Fold,
  itemsOf: (state: unknown) => readonly Item[],
): Collection {
  return {
    upstream,
    async open(tx, { session, seq, key_prefix }) {
      const base = session && (await nearestState(tx, fold, session, seq));
      return async (signal) => {
        const state = session && base ? await foldFrom(log, fold, session, base, signal) : fold.initial;
        return itemsOf(state).filter(({ key }) => key.startsWith(key_prefix));
      };
    },
  };
}

function jobs(deps: ApiDeps): Collection {
  return {
    upstream: "vagrant",
    open: async (_tx, place) => async () => readJobs(deps, place),
  };
}

const jobSpans: Collection = {
  upstream: "vagrant",
  async open(tx, place) {
    const spans = await readJobSpans(tx, place);
    return async () => spans;
  },
};
