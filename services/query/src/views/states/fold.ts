import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { isTextKind } from "@tapedeck/shared/events/kinds";
import { ownValue } from "@tapedeck/shared/own-value";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import type { Collection, Item } from "./collection.ts";
import type { StateTable } from "./state-table.ts";

/** Query's part for an upstream: how the events of a session become its state, and what is served from it. */
export type FoldOf<State> = {
  /** Raised when the same events fold to another state, or the state has another shape. */
  readonly version: number;
  readonly initial: State;
  /** The channels it is folded from, beside Tapedeck's own. */
  readonly channels: readonly string[];
  /** Pure and total; returns the same object for an event that changes nothing. The state is plain JSON. */
  readonly evolve: (state: State, event: Event) => State;
  /** The name on the wire is "<upstream>.<name>". */
  readonly collections: Readonly<Record<string, Collection<State>>>;
  readonly tables: readonly StateTable<State>[];
  /**
   * The differences between the upstream's own answer about its state and the folded state, one line each. Undefined:
   * they can't be compared, because one of them is not at rest or can't be decoded.
   */
  readonly drift: (state: State, answer: StateAnswer) => readonly string[] | undefined;
};

/** The upstream's own answer about its state: `channel` names the API, `state` is its message. */
export type StateAnswer = { readonly channel: string; readonly state: Uint8Array };

export type Fold = FoldOf<unknown>;
export type Folds = Readonly<Record<UpstreamName, Fold>>;

/** Drops the state's type. Holders of a Fold pass its functions only states that came from it. */
export function fold<State>(typed: FoldOf<State>): Fold {
  return typed as unknown as Fold;
}

/** What is served from a state under a name; undefined: that name stands for nothing, or for rows of tables. */
export function stateItems({ collections }: Fold, name: string, state: unknown): readonly Item[] | undefined {
  const collection = ownValue(collections, name);
  return collection?.of === "state" ? collection.items(state) : undefined;
}

/** Text never touches state: it is neither folded nor read for it. */
export function isState(kind: string): boolean {
  return !isTextKind(kind);
}
