import type { Details, GapDetail } from "./details.ts";
import type { Kind } from "./kinds.ts";

export type Outcome = "succeeded" | "failed" | "canceled" | "unknown";

/**
 * One recorded fact. `kind` says which, and which `detail` it has. Times are RFC 3339, with the upstream's nanoseconds;
 * 64-bit numbers are texts.
 */
export type TapedeckEvent<K extends Kind = Kind> = K extends Kind
  ? EventFields & { readonly kind: K; readonly detail?: DetailOf<K> }
  : never;

export type DetailOf<K extends Kind> = K extends "session.gap" | "session.gap_filled"
  ? GapDetail
  : K extends `${infer Noun extends keyof Details}.${string}`
    ? Details[Noun]
    : never;

export type EventFields = {
  /** Position in the log: store the last one that you have handled, and continue `after` it. */
  readonly position: string;
  /** The log's own time of it. */
  readonly recordedAt: string;
  /** The same wherever and however often it is read. */
  readonly id: string;
  /** "workspace/developer/project/upstream" */
  readonly source: string;
  /** Absent of facts about a source as a whole. */
  readonly session?: string;
  readonly channel: string;
  /** 1, 2, 3 … inside session and channel. */
  readonly ordinal: string;
  readonly frameOrdinal: string;
  readonly part: number;
  /** What it is about: an artifact, a resource, a pod, a job … */
  readonly subject?: string;
  readonly outcome?: Outcome;
  readonly error?: { readonly code: string; readonly message: string; readonly suggestions: readonly string[] };
  /** One line for people. */
  readonly summary: string;
  readonly occurredAt?: string;
  /** Whose clock `occurredAt` is; `interval`: it happened between `notBefore` and then. */
  readonly timeSource?: "upstream" | "observed" | "interval";
  readonly notBefore?: string;
  /** When Tapedeck saw it. */
  readonly observedAt?: string;
  /** What it starts, ends or belongs to. */
  readonly operation?: {
    readonly kind: string;
    readonly subject: string;
    readonly runner: number;
    readonly loop: number;
    readonly instance?: string;
  };
  /** Concluded by Tapedeck, not told by the upstream. */
  readonly inferred?: true;
  /** Put into the upstream by somebody's call. */
  readonly injected?: true;
  /** How many secrets were masked in it. */
  readonly redacted?: number;
  /** With `original: true`: the upstream's own message, base64; of one that is too large its size alone. */
  readonly original?: { readonly type: string; readonly size: string; readonly bytes?: string };
};
