import type { ListFilter, PositionOrTime } from "./filter.ts";
import type { Http, Parameters } from "./http.ts";
import { parametersOf as listParametersOf } from "./lists.ts";

type Time = "hour" | "day" | "week" | "time";
type Common = "developer" | "project" | "source" | "loop" | Time | `label.${string}`;
type OfCause = "phase" | "reason" | "cause" | "errorCode" | "error" | "artifact";

/** Artifacts: not of commands. */
export type StatsOptions<Group extends string = string> = ListFilter & {
  /** One row for each value of these; one row of all without it. */
  readonly group?: readonly Group[];
  /** Time zone of hours, days and weeks, such as "Europe/Berlin". Default: UTC. */
  readonly zone?: string;
  /** Only what began in [from, to). */
  readonly from?: PositionOrTime;
  readonly to?: PositionOrTime;
  readonly signal?: AbortSignal;
};

/** What the rows are grouped by: the columns of `group`. */
type Grouped<Group extends string> = {
  readonly [Name in Exclude<Group, `label.${string}`>]?: string;
} & { readonly labels?: Readonly<Record<string, string>> };

// Times are milliseconds, null without any.

export type LoopPhase = "sync" | "build" | "test" | "render" | "deploy" | "check" | "other";

/** What loops waited for in a phase. `share`: of all that they waited, 0 to 1. */
export type PhaseFigures = { readonly waitedMs: number; readonly share: number };

export type LoopFigures = {
  readonly loops: number;
  readonly failed: number;
  readonly overtaken: number;
  readonly overtakenShare: number;
  readonly waitedMs: number;
  /** The times add up to waitedMs. */
  readonly phases: Readonly<Record<LoopPhase, PhaseFigures>>;
  readonly readyP50Ms: number | null;
  readonly readyP90Ms: number | null;
  readonly readyP99Ms: number | null;
  /** Loops whose times can't both be right, or are not known: they are in no percentile, and not in waitedMs. */
  readonly untimed: number;
};

export type FailureFigures = { readonly failures: number; readonly developers: number };

export type GreenFigures = {
  readonly red: number;
  readonly stillRed: number;
  readonly redP50Ms: number | null;
  readonly redP90Ms: number | null;
  readonly loopsBetween: number;
};

export type BuildFigures = {
  readonly count: number;
  readonly failed: number;
  readonly failureRate: number;
  readonly p50Ms: number | null;
  readonly p90Ms: number | null;
  readonly p99Ms: number | null;
  readonly cached: number;
  readonly canceled: number;
  readonly unknown: number;
  /** How many of `count` have impossible or unknown times. They are in no percentile. */
  readonly untimed: number;
};

export type FlakeFigures = {
  readonly builds: number;
  readonly failed: number;
  readonly flakes: number;
  readonly flakeRate: number;
  readonly developers: number;
};

export type CommandFigures = {
  readonly runs: number;
  readonly failed: number;
  readonly p50Ms: number | null;
  readonly p90Ms: number | null;
  /** How many of `runs` have impossible or unknown times. They are in no percentile. */
  readonly untimed: number;
};

type OfCommand = "command" | "machine" | "box" | "provider" | "session" | "position";

type Kinds = {
  readonly loops: { group: Common; figures: LoopFigures };
  readonly failures: { group: OfCause | Common; figures: FailureFigures };
  readonly green: { group: OfCause | Common; figures: GreenFigures };
  readonly builds: { group: "artifact" | Common; figures: BuildFigures };
  readonly flakes: { group: "artifact" | Common; figures: FlakeFigures };
  readonly commands: { group: OfCommand | Exclude<Common, "loop">; figures: CommandFigures };
};

export type StatsKind = keyof Kinds;
/** What each kind of statistics can be grouped by. */
export type StatsGroups = { readonly [Kind in StatsKind]: Kinds[Kind]["group"] };
export type StatsRow<Kind extends StatsKind> = Grouped<StatsGroups[Kind]> & Kinds[Kind]["figures"];

/** One row for each group. `position`: what the numbers reflect. */
export type StatsAnswer<Kind extends StatsKind> = {
  readonly items: readonly StatsRow<Kind>[];
  readonly position: string;
};

/** Numbers of the inner loop, each as the views for SQL have it. Throws as `state` does. */
export type Stats = {
  readonly [Kind in StatsKind]: (options?: StatsOptions<StatsGroups[Kind]>) => Promise<StatsAnswer<Kind>>;
};

export function statsOf({ get }: Http): Stats {
  const asking =
    <Kind extends StatsKind>(kind: Kind) =>
    async (options: StatsOptions = {}) =>
      (await get(`/api/v1/stats/${kind}`, parametersOf(options), options.signal)) as StatsAnswer<Kind>;
  return {
    loops: asking("loops"),
    failures: asking("failures"),
    green: asking("green"),
    builds: asking("builds"),
    flakes: asking("flakes"),
    commands: asking("commands"),
  };
}

function parametersOf({ group, zone, ...filter }: StatsOptions): Parameters {
  return { ...listParametersOf(filter), group, zone };
}
