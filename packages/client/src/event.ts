import type { Details, GapDetail } from "./details.ts";
import type { Kind } from "./kinds.ts";

export type Outcome = "succeeded" | "failed" | "canceled" | "unknown";

/**
 * One recorded fact. `kind` is its type, and determines the type of `detail`. Times are RFC 3339, with the upstream's
 * nanoseconds.
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
  /** When the log stored it. */
  readonly recordedAt: string;
  /** Identifies the event: the same on every transport and in every read. */
  readonly id: string;
  /** "workspace/developer/project/upstream" */
  readonly source: string;
  /** Absent for facts about a source as a whole. */
  readonly session?: string;
  readonly channel: string;
  /** Number of the event within session and channel: 1, 2, 3 … */
  readonly ordinal: number;
  readonly frameOrdinal: number;
  readonly part: number;
  /** What the event is about: an artifact, a resource, a pod, a job … */
  readonly subject?: string;
  readonly outcome?: Outcome;
  readonly error?: { readonly code: string; readonly message: string; readonly suggestions: readonly string[] };
  /** One line for people. */
  readonly summary: string;
  readonly occurredAt?: string;
  /** The clock that `occurredAt` is from; `interval`: it happened between `notBefore` and then. */
  readonly timeSource?: "upstream" | "observed" | "interval";
  readonly notBefore?: string;
  /** When Tapedeck received it. */
  readonly observedAt?: string;
  /** The operation that the event starts, ends or belongs to. */
  readonly operation?: {
    readonly kind: string;
    readonly subject: string;
    readonly runner: number;
    readonly loop: number;
    readonly instance?: string;
  };
  /** Derived by Tapedeck, not reported by the upstream. */
  readonly inferred?: true;
  /** Injected into the upstream by a client's call through Tapedeck. */
  readonly injected?: true;
  /** Number of secrets that were masked in the event. */
  readonly redacted?: number;
  /** With `original: true`: the upstream's own message in base64, or only its size if it was too large to keep. */
  readonly original?: { readonly type: string; readonly size: number; readonly bytes?: string };
};
