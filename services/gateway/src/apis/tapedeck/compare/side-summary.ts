import type { Cause } from "@tapedeck/proto/tapedeck/v1/lists";
import type { AnswerOf } from "../answers.ts";

/** A value, and where in the log it was recorded. */
export type Found = { readonly value: string; readonly position: string };

/** What is known of one side of a comparison. Plain data: the differences of two are a pure function. */
export type SideSummary = {
  /** How people name it beside the other side: "loop 14", "bob/shop". */
  readonly name: string;
  readonly session: string;
  /** Counts the runners (configuration loads) of the session. */
  readonly runner: number;
  /** The loop's number; 0 for a command or a whole session. */
  readonly loop: number;
  readonly outcome: AnswerOf<"Operation">["outcome"];
  /** Where the state was read: the end of the loop. */
  readonly position: string;
  readonly version: Found;
  readonly labels: FoundByName;
  /** "dev -p staging", without the program; empty where it is not known. */
  readonly command: Found;
  /** By a path such as "deploy.kubectl" or "build.web.dockerfile". */
  readonly settings: FoundByName;
  /** The artifacts of the configuration, built or not; undefined where the upstream does not list them. */
  readonly artifacts: FoundByName | undefined;
  readonly resources: FoundByName;
  /** Local ports by resource and its port. */
  readonly ports: FoundByName;
  readonly debuggers: FoundByName;
  readonly steps: readonly SummaryStep[];
  readonly failure: Failure | undefined;
  readonly gaps: number;
  /** Absent without a loop. */
  readonly checkout?: Checkout | undefined;
  /** Sentences: what was recorded and not read. */
  readonly unread?: readonly string[];
};

export type Checkout = {
  readonly source: string;
  /** When the side's loop began: milliseconds since 1970. */
  readonly at: number;
  /** The changes up to then in the side's session, the oldest first. */
  readonly changes: readonly FileChanges[];
  /** Earlier ones were not read: milliseconds since 1970. Absent: all were. */
  readonly from?: number;
};

export type FileChanges = {
  readonly at: number;
  readonly files: readonly { readonly path: string; readonly change: string }[];
  readonly more: number;
  readonly position: string;
};

export type OutputLine = Found & { readonly isCause: boolean };

export type FoundByName = ReadonlyMap<string, Found>;

/** A build, test, deploy … of the loop; or a command, an app. */
export type SummaryStep = {
  readonly kind: string;
  readonly subject: string;
  readonly outcome: AnswerOf<"Operation">["outcome"];
  readonly durationMs: number | undefined;
  readonly isCached: boolean;
  readonly platform: string;
  readonly position: string;
  /** The median of the last good ones of this source; undefined where there are too few. */
  readonly usualMs: number | undefined;
};

/** The first failure, with all its texts. */
export type Failure = {
  readonly phase: string;
  readonly subject: string;
  readonly code: string;
  readonly text: string;
  readonly suggestions: readonly string[];
  readonly position: string;
  /** How often the step failed: Skaffold tries a sync up to four times. */
  readonly tries: number;
  /** Why it failed; undefined: neither output nor error say it. */
  readonly cause: Cause | undefined;
  /** The step's output around the cause. */
  readonly output: readonly OutputLine[];
};
