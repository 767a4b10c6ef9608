import type { TapedeckEvent } from "./event.ts";
import type { Kind } from "./kinds.ts";

/** What a subscription gives, in this order: a state where one was asked for, then events and marks. */
export type Message<K extends Kind = Kind> =
  | { readonly type: "event"; readonly position: string; readonly event: TapedeckEvent<K> }
  | StateMessage
  /** Once: the events so far were history, what follows is live. */
  | { readonly type: "caught_up"; readonly position: string }
  /** Nothing for this subscription, and the log went on: what matches up to here has been given. */
  | { readonly type: "bookmark"; readonly position: string }
  /** The end that `until` asked for. */
  | { readonly type: "complete"; readonly position: string };

export type StateMessage = {
  readonly type: "state";
  /** What the state reflects: the events that follow are those after it. */
  readonly position: string;
  readonly source: string;
  readonly state: UpstreamState;
};

/** In the upstream's own JSON. Skaffold: `v1`, `v2`; rkt: `info`, `pods`, `images`; Vagrant: `jobs`, `targets` and more. */
export type UpstreamState = Readonly<Record<string, unknown>>;
