import type { Sample } from "./sample.ts";

/** What a figure has to reach. `ratio`: figure / calibration; `value`: the figure itself. */
export type Target = { readonly of: "ratio" | "value" } & (
  | { readonly atLeast: number; readonly atMost?: undefined }
  | { readonly atMost: number; readonly atLeast?: undefined }
);

/** One line of the table, before it is measured. */
export type Figure = {
  readonly name: string;
  readonly unit: string;
  /** What the calibration does. */
  readonly calibration: string;
  readonly of: (sample: Sample) => number;
  /** What of the calibration's sample counts. Default: as `of`. */
  readonly against?: (sample: Sample) => number;
  readonly targets: readonly Target[];
};

export type Spread = { readonly median: number; readonly low: number; readonly high: number };

/** A measured line. All runs are kept, so that a reader of the JSON can judge the medians. */
export type FigureRow = {
  readonly part: string;
  readonly size: number;
  readonly figure: string;
  readonly unit: string;
  readonly calibration: string;
  readonly targets: readonly Target[];
  readonly verdict: "met" | "missed" | "failed" | "skipped" | "no target";
  readonly runs: readonly number[];
  readonly calibrationRuns: readonly number[];
  /** Pair by pair, in the order of the runs. */
  readonly ratios: readonly number[];
  /** Counted at the client, per run. */
  readonly counts: readonly number[];
  readonly wallMs: readonly number[];
  /** Medians over the runs: µs of processor time per event by process, and the part of one core that each used. */
  readonly cpuPerEvent: Readonly<Record<string, number>>;
  readonly calibrationCpuPerEvent: Readonly<Record<string, number>>;
  readonly cores: Readonly<Record<string, number>>;
  readonly calibrationCores: Readonly<Record<string, number>>;
  /** Which of these processes are the bench's own. */
  readonly clients: readonly string[];
  readonly notes: readonly string[];
  /** Why it has no figures: it failed or was skipped. */
  readonly error?: string;
};

export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  return { median: quantile(sorted, 0.5), low: quantile(sorted, 0.25), high: quantile(sorted, 0.75) };
}

/** `sorted` is ascending. Interpolates between neighbours; NaN when there are none. */
export function quantile(sorted: ArrayLike<number>, part: number): number {
  const at = (sorted.length - 1) * part;
  const below = sorted[Math.floor(at)] ?? Number.NaN;
  const above = sorted[Math.ceil(at)] ?? Number.NaN;
  return below + (above - below) * (at - Math.floor(at));
}

export function verdictOf(targets: readonly Target[], value: number, ratio: number): FigureRow["verdict"] {
  if (targets.length === 0) return "no target";
  const isMet = targets.every(({ of, atLeast, atMost }) => {
    const reached = of === "ratio" ? ratio : value;
    return atLeast === undefined ? reached <= atMost : reached >= atLeast;
  });
  return isMet ? "met" : "missed";
}
