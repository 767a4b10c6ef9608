import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import type { StateTable } from "./state-table.ts";

/** What query brings for an upstream: how the events of a session become its state, and what is served of it. */
export type FoldOf<State> = {
  /** Raised when the same events fold to another state, or the state has another shape. */
  readonly version: number;
  readonly initial: State;
  /** Whose events it is folded from, beside what Tapedeck itself says. */
  readonly channels: readonly string[];
  /** Pure and total; gives the very same object back for what changes nothing. The state is plain JSON. */
  readonly evolve: (state: State, event: Event) => State;
  /** What ReadState serves, by the name behind "<upstream>.". */
  readonly collections: Readonly<Record<string, (state: State) => readonly Item[]>>;
  readonly tables: readonly StateTable<State>[];
  /**
   * What the upstream's own answer about its state says otherwise, one line each. Undefined: not to be compared, because
   * one of the two is not at rest or can't be read.
   */
  readonly drift: (state: State, answer: Answer) => readonly string[] | undefined;
};

/** What the upstream itself answered about its state: `channel` names the API, `state` is its message. */
export type Answer = { readonly channel: string; readonly state: Uint8Array };

/** `seq`: of the event that it was last told by, where that is known. */
export type Item = { readonly key: string; readonly bytes: Uint8Array; readonly seq?: number };

export type Fold = FoldOf<unknown>;
export type Folds = Readonly<Record<UpstreamName, Fold>>;

/** Forgets the state's type: whoever holds a Fold gives its functions only states that came from it. */
export function fold<State>(typed: FoldOf<State>): Fold {
  return typed as unknown as Fold;
}

/** Text never touches state: neither folded nor read for it. */
export function isState(kind: string): boolean {
  return kind !== "log.written" && kind !== "terminal.written";
}
