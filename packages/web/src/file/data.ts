import type { Comparison, Operation, Session, TapedeckEvent, UpstreamState } from "@tapedeck/client";

/** A session as of `position`: what `tapedeck export --html` writes into the page, as JSON, with gzip, in base64. */
export type SessionData = {
  readonly version: typeof dataVersion;
  readonly exportedAt: string;
  /** Program and version. */
  readonly exportedBy: string;
  readonly session: Session;
  readonly position: string;
  /** In order, without mirrors. */
  readonly events: readonly TapedeckEvent[];
  /** How many older events of the session are not in it. */
  readonly olderEvents: number;
  /** Newest first, as the API gives them. */
  readonly operations: readonly Operation[];
  /** How many older operations of the session are not in it. */
  readonly olderOperations: number;
  /** In order. Each `state` is an index of `states`: it often stays as it is. */
  readonly statePoints: readonly { readonly position: string; readonly state: number }[];
  readonly states: readonly UpstreamState[];
  /** Comparisons of failed loops with the last good ones, by `<session>.<runner>.<loop>`. */
  readonly comparisons: Readonly<Record<string, Comparison>>;
};

/** Another one: this page cannot read it. */
export const dataVersion = 1;

/** The placeholder, once in the page, that the data replace. */
export const dataMark = "@@TAPEDECK_SESSION@@";

/** Whether the state may be another one after an event. */
export function maySetState({ kind }: Pick<TapedeckEvent, "kind">): boolean {
  return !/^(log|terminal|mirror)\./.test(kind);
}
