import type { Outcome } from "./event.ts";
import type { PositionOrTime } from "./filter.ts";
import type { Cause } from "./resources.ts";

export type CompareOptions = {
  /** The other side. Without it: the last good loop before the one on the left, which is then the newest that failed. */
  readonly right?: string;
  /** Nothing that was recorded later is in the answer. Default: now. */
  readonly at?: PositionOrTime;
  readonly signal?: AbortSignal;
};

/** What differs between two loops, sessions or sources. */
export type Comparison = {
  readonly left: ComparedSide;
  /** Null: there is no good one to compare with. */
  readonly right: ComparedSide | null;
  /** The best explanation first. */
  readonly differences: readonly Difference[];
  /** How many facts are the same on both sides. */
  readonly equal: number;
  /** These: the first 500. */
  readonly same: readonly SameFact[];
  /** How many further differences were found; those explain the least. */
  readonly omitted: number;
  /** The position that the answer reflects. */
  readonly position: string;
};

export type ComparedSide = {
  /** For people, beside the other side: "loop 14", "bob/shop". */
  readonly name: string;
  readonly source: string;
  readonly upstream: string;
  readonly session: string;
  readonly unit: "loop" | "command" | "session" | (string & {});
  readonly runner: number;
  readonly loop: number;
  /** Name of the command. */
  readonly subject: string;
  /** Null while it runs, as are its end and duration. */
  readonly outcome: Outcome | null;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  readonly durationMs: number | null;
  readonly startPosition: string;
  /** State and events are those up to here. */
  readonly position: string;
  readonly failure: ComparedFailure | null;
  /** Sentences: what was recorded of it and not compared, because there is too much. */
  readonly unread: readonly string[];
};

/** What failed first. */
export type ComparedFailure = {
  readonly phase: string;
  readonly subject: string;
  readonly errorCode: string;
  readonly error: string;
  /** Null: neither output nor error say why. */
  readonly cause: Cause | null;
  readonly suggestions: readonly string[];
  readonly position: string;
  /** How often the step failed: Skaffold tries a sync up to four times. */
  readonly tries: number;
  /** Its output around the cause. */
  readonly output: readonly OutputLine[];
};

export type OutputLine = {
  readonly text: string;
  /** Where the event stands that has it. */
  readonly position: string;
  readonly isCause: boolean;
};

export type DifferenceKind =
  | ("resource" | "failure" | "command" | "version" | "platform" | "configuration" | "artifact")
  | ("file" | "label" | "port" | "debugger" | "duration" | "gap")
  | (string & {});

export type Difference = {
  readonly kind: DifferenceKind;
  /** What differs: a label, a resource, a setting … */
  readonly subject: string;
  /** A sentence. */
  readonly text: string;
  /** The values; null on a side that lacks it. */
  readonly left: string | null;
  readonly right: string | null;
  /** Where it was recorded. */
  readonly evidence: readonly Evidence[];
};

/** What is the same on both sides. */
export type SameFact = {
  readonly kind: DifferenceKind;
  readonly subject: string;
  /** A duration has the value of each side. */
  readonly value: string;
};

export type Evidence = {
  readonly side: "left" | "right" | (string & {});
  readonly session: string;
  readonly position: string;
  readonly text: string;
};
