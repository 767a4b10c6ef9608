import type { Item } from "../../views/states/collection.ts";
import type { NamedCollection } from "../collections.ts";
import type { StateTables } from "./state-tables.ts";

type FoldedCollection = Extract<NamedCollection, { readonly of: "state" }>;

/** The folded state of a session, and what was made of it. */
export class ReadableState {
  readonly #state: unknown;
  readonly #items = new Map<string, readonly Item[]>();

  constructor(state: unknown) {
    this.#state = state;
  }

  itemsOf({ name, items }: FoldedCollection): readonly Item[] {
    const made = this.#items.get(name) ?? items(this.#state);
    this.#items.set(name, made);
    return made;
  }
}

/** The newest state of a session, and the tables' answer when it was read, without its JSON. */
export type HeldState = { readonly tables: StateTables; readonly state: ReadableState; readonly size: number };

/** The newest states of sessions, by the questions that were asked for them last. */
export class RecentStates {
  readonly #limit: number;
  /** The oldest question first. */
  readonly #held = new Map<string, HeldState>();
  #size = 0;

  /** `limit`: of all sizes together. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get(question: string): HeldState | undefined {
    const held = this.#held.get(question);
    if (held === undefined) return undefined;
    this.#held.delete(question);
    this.#held.set(question, held);
    return held;
  }

  put(question: string, held: HeldState): void {
    this.#drop(question);
    this.#held.set(question, held);
    this.#size += held.size;
    for (const [oldest] of this.#held) {
      if (this.#size <= this.#limit) return;
      this.#drop(oldest);
    }
  }

  #drop(question: string): void {
    this.#size -= this.#held.get(question)?.size ?? 0;
    this.#held.delete(question);
  }
}
