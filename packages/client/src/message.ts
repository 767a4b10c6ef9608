import type { TapedeckEvent } from "./event.ts";
import type { Kind } from "./kinds.ts";

/** The messages of a subscription: first a state if one was requested, then events and marks. */
export type Message<K extends Kind = Kind> =
  | { readonly type: "event"; readonly position: string; readonly event: TapedeckEvent<K> }
  | StateMessage
  /** Once: the events before it are history, those after it are live. */
  | { readonly type: "caught_up"; readonly position: string }
  /** The log grew without a match for this subscription: every match up to here has been sent. */
  | { readonly type: "bookmark"; readonly position: string }
  /** The subscription has reached `until`. */
  | { readonly type: "complete"; readonly position: string };

export type StateMessage = {
  readonly type: "state";
  /** The position that the state reflects. The events that follow are those after it. */
  readonly position: string;
  readonly source: string;
  readonly state: UpstreamState;
};

/** In the upstream's own JSON. Skaffold: `v1`, `v2`; rkt: `info`, `pods`, `images`; Vagrant: `jobs`, `targets` and more. */
export type UpstreamState = Readonly<Record<string, unknown>>;
