import type { Outcome } from "./event.ts";
import type { ListFilter, PositionOrTime } from "./filter.ts";
import type { UpstreamState } from "./message.ts";

export type ListOptions = {
  /** A position or time: the list as of then. */
  readonly at?: PositionOrTime;
  /** How many items one request asks for: at most 1,000, 100 by default. More follow as they are taken. */
  readonly pageSize?: number;
  readonly signal?: AbortSignal;
};

export type SourcesOptions = ListOptions & ListFilter;

/** Only entries that started in [from, to). */
type Started = { readonly from?: PositionOrTime; readonly to?: PositionOrTime };

export type SessionsOptions = ListOptions & ListFilter & Started;

export type OperationKind =
  | ("loop" | "init" | "build" | "test" | "render" | "deploy" | "verify" | "exec" | "check" | "sync")
  | ("pod" | "app" | "job" | "command");

/** Labels are those of the loop when it began, else of the session. */
export type OperationsOptions = ListOptions &
  ListFilter &
  Started & {
    readonly kinds?: readonly OperationKind[];
    readonly subjects?: readonly string[];
    readonly outcomes?: readonly Outcome[];
    /** At most this many newest matches per source; at most 1,000. */
    readonly perSource?: number;
    /** Only those of this runner; `sessions` has to name its session alone. */
    readonly runner?: number;
    /** The loop with this number of the runner, and what ran in it. */
    readonly loop?: number;
  };

/** One recorded upstream. */
export type Source = {
  /** "workspace/developer/project/upstream" */
  readonly source: string;
  readonly workspace: string;
  readonly developer: string;
  readonly project: string;
  readonly upstream: "skaffold" | "vagrant" | "rkt" | (string & {});
  readonly status: "recording" | "waiting" | "lost" | (string & {});
  readonly currentSession: string | null;
  readonly lastEventAt: string | null;
  readonly lastPosition: string;
  readonly firstPosition: string;
  /** Names as the user wrote them. */
  readonly developerName: string;
  readonly projectName: string;
  readonly address: string;
  readonly gaps: number;
  /** Set while the source is lost, or a list of a polled one is late: time of the last contact. */
  readonly notHeardSince: string | null;
  /** When each collection of a polled source was heard last, by its tap's clock. Empty: not polled, or unknown. */
  readonly heardAt: Readonly<Record<string, string>>;
  /**
   * How far the clock of its tap or upstream is ahead of the log's, in milliseconds; negative: behind, or its
   * newest events were recorded late. Null: within a minute, or unknown.
   */
  readonly clockOffsetMs: number | null;
  /**
   * Age of the known state, in milliseconds: of a polled or lost source since it was heard; of another one from
   * when the newest event happened until the log had it (output does not count). Null: unknown.
   */
  readonly lagMs: number | null;
};

/** One lifetime of the upstream behind a source. */
export type Session = {
  readonly session: string;
  readonly source: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly startedAt: string | null;
  /** Null while it runs, and when its end was not seen although `endReason` states that it has ended. */
  readonly endedAt: string | null;
  readonly endReason: string | null;
  readonly startPosition: string;
  readonly endPosition: string;
  readonly upstreamVersion: string;
  readonly gaps: number;
  /** The exit code of the upstream's process, else of the command of `tapedeck run`; null: unknown, or a signal ended it. */
  readonly exitCode: number | null;
  /** The command that `tapedeck run` recorded, without secrets. */
  readonly commandLine: string | null;
  /** Why its process failed; null: it did not, or nobody knows. */
  readonly cause: Cause | null;
};

/**
 * Why something failed, concluded from its output and its error when they are recorded. Output that is recorded later may
 * change it: also in a list as of a position, it is what is known now.
 */
export type Cause = {
  /** The line that says why, as it was printed. Empty: it was stopped, and nothing says more. */
  readonly text: string;
  readonly reason: "compile error" | "image not found" | "timeout" | "cancelled" | (string & {});
  /** Equal for causes of one kind. */
  readonly group: string;
  /** The file, as the output names it. */
  readonly file: string | null;
  readonly line: number | null;
  /** What the tool recommends. */
  readonly advice: string | null;
  /** Kind and subject of the step that failed first in a loop; otherwise empty. */
  readonly phase: string;
  readonly subject: string;
  /** How often that step failed in the loop: Skaffold tries a sync up to four times. Otherwise 1. */
  readonly tries: number;
};

/** Something with a start and an end: a build, a deploy, a dev loop, a job, a pod. */
export type Operation = {
  readonly id: string;
  readonly kind: OperationKind | (string & {});
  readonly subject: string;
  readonly instance: string;
  readonly source: string;
  readonly session: string;
  readonly runner: number;
  readonly loop: number;
  readonly startedAt: string | null;
  /** Null while it runs, as are duration and outcome. */
  readonly endedAt: string | null;
  /** Null, too, if its times are not known or can't both be right. */
  readonly durationMs: number | null;
  readonly outcome: Outcome | null;
  readonly errorCode: string;
  readonly error: string;
  /** Why it failed, or a step of this loop, which may have succeeded all the same; null: nothing failed, or nobody knows. */
  readonly cause: Cause | null;
  readonly exitCode: number | null;
  readonly cacheHit: boolean;
  readonly platform: string;
  readonly startPosition: string;
  readonly endPosition: string | null;
  /** The labels when the loop began. Absent for other kinds of operations. */
  readonly labels?: Readonly<Record<string, string>>;
};

export type StateOptions = {
  /** A position or time: the state as of then. Without it: now. */
  readonly at?: PositionOrTime;
  /** Without it: the newest session of the source. */
  readonly session?: string;
  readonly signal?: AbortSignal;
};

/** State of a source at a moment. Events after `position` are newer than the state. */
export type State = {
  readonly source: string;
  readonly session: string | null;
  readonly sessionEnded: boolean;
  /** Set while the source is lost, or a list of a polled one is late: time of the last contact with its upstream. */
  readonly notHeardSince: string | null;
  /** When each collection of a polled source was heard last, by its tap's clock. Empty: not polled, or unknown. */
  readonly heardAt: Readonly<Record<string, string>>;
  /** The position that the state reflects. */
  readonly position: string;
  /** `at` of the request. */
  readonly at: string | null;
  readonly upstream: "skaffold" | "vagrant" | "rkt" | (string & {});
  readonly state: UpstreamState;
};
