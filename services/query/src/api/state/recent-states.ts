import type { Item } from "../../views/states/collection.ts";
import type { Fold } from "../../views/states/fold.ts";
import type { NamedCollection } from "../collections.ts";
import type { StateTables } from "./state-tables.ts";

type FoldedCollection = Extract<NamedCollection, { readonly of: "state" }>;

/** What is served of a session's state: made of the whole state, or held from an earlier answer. */
export class ReadableState {
  readonly #make: (collection: FoldedCollection) => readonly Item[];
  readonly #items = new Map<string, readonly Item[]>();

  constructor(make: (collection: FoldedCollection) => readonly Item[]) {
    this.#make = make;
  }

  static of(state: unknown): ReadableState {
    return new ReadableState(({ items }) => items(state));
  }

  itemsOf(collection: FoldedCollection): readonly Item[] {
    const made = this.#items.get(collection.name) ?? this.#make(collection);
    this.#items.set(collection.name, made);
    return made;
  }
}

/** What a collection costs without items: questions about many sessions would otherwise hold any number of empty ones. */
const entryBytes = 1024;

/** The newest items of some collections, and the tables' answer when they were read, without its JSON. */
export type HeldState = { readonly tables: StateTables; readonly state: ReadableState };

type HeldCollection = { readonly tables: StateTables; readonly items: readonly Item[]; readonly bytes: number };

/**
 * The newest collections of sessions' states, by the questions that were asked for them last. Each is held by itself, so that a
 * small one of a large state stays: an answer costs what it returns.
 */
export class RecentStates {
  readonly #limit: number;
  /** The one that was asked for longest ago first. */
  readonly #held = new Map<string, HeldCollection>();
  #bytes = 0;

  /** `limit`: bytes of all that is held, with what holding it costs. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Undefined unless all of these collections are held, as of one state. */
  get(question: string, names: readonly string[]): HeldState | undefined {
    const found = names.map((name) => [name, this.#held.get(keyOf(question, name))] as const);
    const [, first] = found[0] ?? [];
    if (first === undefined) return undefined;
    const items = new Map<string, readonly Item[]>();
    for (const [name, held] of found) {
      if (held?.tables.stored?.version !== first.tables.stored?.version || held === undefined) return undefined;
      items.set(name, held.items);
      const key = keyOf(question, name);
      this.#held.delete(key);
      this.#held.set(key, held);
    }
    return { tables: first.tables, state: new ReadableState(({ name }) => items.get(name) ?? []) };
  }

  put(question: string, { tables, state }: HeldState, collections: readonly FoldedCollection[]): void {
    for (const collection of collections) {
      const items = state.itemsOf(collection);
      const key = keyOf(question, collection.name);
      const bytes = items.reduce((sum, { key, bytes }) => sum + key.length + bytes.byteLength, key.length + entryBytes);
      this.#put(key, { tables, items, bytes });
    }
  }

  #put(key: string, held: HeldCollection): void {
    this.#drop(key);
    // One that does not fit must not drive out those that do.
    if (held.bytes > this.#limit) return;
    this.#held.set(key, held);
    this.#bytes += held.bytes;
    for (const [oldest] of this.#held) {
      if (this.#bytes <= this.#limit) return;
      this.#drop(oldest);
    }
  }

  #drop(key: string): void {
    this.#bytes -= this.#held.get(key)?.bytes ?? 0;
    this.#held.delete(key);
  }
}

function keyOf(question: string, name: string): string {
  return `${question} ${name}`;
}

/** The collections that are made of the states of a fold. */
export function foldedOf(collections: Iterable<NamedCollection>, fold: Fold): readonly FoldedCollection[] {
  return [...collections].filter((one): one is FoldedCollection => one.of === "state" && one.fold === fold);
}
