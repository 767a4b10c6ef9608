import type { LoopFigures, LoopPhase, StatsRow } from "@tapedeck/client";
import type { Bin } from "./bins.ts";
import type { TrendsGroup } from "./choice.ts";

/** A number for each bin; null where there is none. */
export type Series = readonly (number | null)[];

type Binned = { readonly hour?: string; readonly day?: string; readonly week?: string };

/** Rows by the bins that they are of: one place for each bin. */
export function byBin<Row extends Binned>(
  rows: readonly Row[],
  bins: readonly Bin[],
  group: TrendsGroup,
): (Row | undefined)[] {
  const found = new Map(rows.map((row) => [row[group], row]));
  return bins.map(({ key }) => found.get(key));
}

export function seriesOf<Row>(rows: readonly (Row | undefined)[], figure: (row: Row) => number | null): Series {
  return rows.map((row) => (row === undefined ? null : figure(row)));
}

export type Cause = {
  readonly key: string;
  readonly reason: string;
  /** The cause without what differs from run to run. */
  readonly cause: string;
  readonly count: number;
  readonly counts: readonly number[];
};

/** The most frequent causes, and all others as one. */
export type Causes = { readonly top: readonly Cause[]; readonly rest: Cause | undefined; readonly count: number };

/** How many are named. */
export const maxCauses = 6;
export const restKey = "rest";

export function causeKey({ reason = "", cause = "" }: { readonly reason?: string; readonly cause?: string }) {
  return `${reason}/${cause}`;
}

/** Failures by reason and kind of cause, the most frequent first. */
export function causesOf(
  rows: readonly StatsRow<"failures">[],
  bins: readonly Bin[],
  group: TrendsGroup,
  max: number,
): Causes {
  const index = new Map(bins.map(({ key }, at) => [key, at]));
  const causes = new Map<string, { reason: string; cause: string; counts: number[] }>();
  for (const row of rows) {
    const at = index.get(row[group] ?? "");
    if (at === undefined) continue;
    const key = causeKey(row);
    const { reason = "", cause = "" } = row;
    const known = causes.get(key) ?? { reason, cause, counts: bins.map(() => 0) };
    known.counts[at] = (known.counts[at] ?? 0) + row.failures;
    causes.set(key, known);
  }
  const all = [...causes]
    .map(([key, cause]): Cause => ({ key, ...cause, count: sum(cause.counts) }))
    .toSorted((a, b) => b.count - a.count || (a.key < b.key ? -1 : 1));
  // A rest of one is no rest.
  const visible = all.length === max + 1 ? all.length : max;
  const rest = all.slice(visible);
  return {
    top: all.slice(0, visible),
    rest:
      rest.length === 0
        ? undefined
        : {
            key: restKey,
            reason: "",
            cause: "",
            count: sum(rest.map(({ count }) => count)),
            counts: bins.map((_, at) => sum(rest.map(({ counts }) => counts[at] ?? 0))),
          },
    count: sum(all.map(({ count }) => count)),
  };
}

/** "compile error: cannot find name", without what differs from run to run. */
export function causeText({ key, reason, cause }: Pick<Cause, "key" | "reason" | "cause">): string {
  if (key === restKey) return "everything else";
  return cause || reason || "not known";
}

export type Artifact = {
  readonly project: string;
  readonly artifact: string;
  readonly builds: number;
  /** By bins, for a sparkline. */
  readonly series: Series;
};

export type SlowArtifact = Artifact & { readonly p50Ms: number | null; readonly p90Ms: number | null };
export type FlakyArtifact = Artifact & { readonly flakes: number; readonly developers: number };

/** The artifacts whose builds take longest. */
export function slowest(rows: readonly StatsRow<"builds">[], max: number): readonly StatsRow<"builds">[] {
  return rows
    .filter(({ p90Ms }) => p90Ms !== null)
    .toSorted((a, b) => Number(b.p90Ms) - Number(a.p90Ms) || nameOf(a).localeCompare(nameOf(b)))
    .slice(0, max);
}

/** The artifacts with the most flakes. */
export function flakiest(rows: readonly StatsRow<"flakes">[], max: number): readonly StatsRow<"flakes">[] {
  return rows
    .filter(({ flakes }) => flakes > 0)
    .toSorted((a, b) => b.flakes - a.flakes || nameOf(a).localeCompare(nameOf(b)))
    .slice(0, max);
}

export function nameOf({ project = "", artifact = "" }: { readonly project?: string; readonly artifact?: string }) {
  return `${project}/${artifact}`;
}

/** A command of Vagrant and its machine; without one it was for all of them. */
export function commandKey({ command = "", machine = "" }: { readonly command?: string; readonly machine?: string }) {
  return `${command}/${machine}`;
}

/** "up on web1", of a key. */
export function commandText(key: string): string {
  const [command = "", machine = ""] = key.split("/");
  return machine === "" ? command : `${command} on ${machine}`;
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}

/** "12 %", "0.4 %", "< 0.1 %" */
export function shareText(share: number): string {
  const percent = share * 100;
  if (percent > 0 && percent < 0.05) return "< 0.1 %";
  return `${percent > 0 && percent < 1 ? percent.toFixed(1) : Math.round(percent)} %`;
}

type Phased = Pick<LoopFigures, "phases">;

/** A phase that loops waited for. */
export type WaitedFor = {
  readonly phase: LoopPhase;
  readonly ms: number;
  /** The part of all that they waited, 0 to 1. */
  readonly share: number;
  /** The share by bins, for a sparkline. */
  readonly series: Series;
};

/** What loops waited for, longest first; phases that took no time are left out. */
export function waitedFor(all: Phased | undefined, bins: readonly (Phased | undefined)[]) {
  return phasesIn(all === undefined ? [] : [all])
    .map((phase): WaitedFor => {
      const { waitedMs = 0, share = 0 } = all?.phases[phase] ?? {};
      return { phase, ms: waitedMs, share, series: seriesOf(bins, ({ phases }) => phases[phase].share) };
    })
    .toSorted((a, b) => b.ms - a.ms || (a.phase < b.phase ? -1 : 1));
}

/** The order in which they run. */
export const phases: readonly LoopPhase[] = ["sync", "build", "test", "render", "deploy", "check", "other"];

/** The phases that any of them waited for. */
export function phasesIn(all: readonly Phased[]): readonly LoopPhase[] {
  return phases.filter((phase) => all.some((row) => row.phases[phase].waitedMs > 0));
}
