import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import type { Postgres } from "@tapedeck/infra/local/postgres";
import { startServiceProcess } from "../../faults/service-process.ts";
import { type Figure, type FigureRow, spread, verdictOf } from "./row.ts";
import type { Sample } from "./sample.ts";
import type { SkaffoldProject } from "./skaffold-dev.ts";
import type { Stack } from "./stack-type.ts";

/** How much is measured. */
export type Scale = {
  /** Events in the log, or builds in the tables. */
  readonly size: number;
  /** Pairs of a figure's run and its calibration's, after the warm-up. */
  readonly runs: number;
  readonly warmUps: number;
  /** 1 for a full run; smaller numbers shorten times and counts that do not depend on the size. */
  readonly effort: number;
};

export type BenchOptions = Scale & {
  readonly folder: string;
  readonly profileFolder?: string;
  /** A server for all stacks, each with a database of its own; for tests. Default: each stack has its own. */
  readonly postgres?: Postgres;
  /** For tests too: what parts without upstreams use instead of a stack of their own. Each part has its own sources. */
  readonly readers?: Stack;
  /** For the part that runs a real Skaffold. */
  readonly skaffold?: SkaffoldProject;
  /** How services are started; for tests. Default: each is a process of its own. */
  readonly startService?: typeof startServiceProcess;
  /** Called with every line as soon as it is measured. */
  readonly onRow?: (row: FigureRow) => void;
};

/** A line, or lines that come from the same runs. */
export type Comparison = {
  readonly figures: readonly Figure[];
  readonly run: () => Promise<Sample>;
  readonly calibrate: () => Promise<Sample>;
  /** Processes of the bench itself, which must not be the limit. */
  readonly clients?: readonly string[];
  readonly notes?: readonly string[];
  readonly deadlineMs?: number;
  /** Instead of the scale's, for what is the same every time or takes long. */
  readonly runs?: number;
  readonly warmUps?: number;
};

/** From this part of a core on, a client or generator may be what limits the figure. */
const fullCore = 0.9;
/** Processor time is counted in steps of 10 ms, so the share of a shorter run says nothing. */
const shortestMs = 300;

/** What a part has at hand: how much to measure, a place for files, and where its lines go. */
export class Bench {
  readonly part: string;
  readonly options: BenchOptions;
  readonly rows: FigureRow[] = [];

  constructor(part: string, options: BenchOptions) {
    this.part = part;
    this.options = options;
  }

  /** A count that a short bench makes smaller. */
  scaled(count: number, least = 1): number {
    return Math.max(least, Math.round(count * this.options.effort));
  }

  /** Every path once, for tests: what differs only in its numbers is left out. */
  get isTiny(): boolean {
    return this.options.effort < 0.1;
  }

  get startService(): typeof startServiceProcess {
    return this.options.startService ?? startServiceProcess;
  }

  newFolder(name: string): Promise<string> {
    return mkdtemp(join(this.options.folder, `${this.part}-${name}-`));
  }

  /** Runs figure and calibration in turns. A failure becomes a line without figures and does not stop the part. */
  async compare(comparison: Comparison): Promise<void> {
    const { figures, deadlineMs = 300_000 } = comparison;
    const measured: Sample[] = [];
    const calibrated: Sample[] = [];
    let error: string | undefined;
    try {
      await within(deadlineMs, async (signal) => {
        const { runs, warmUps } = { ...this.options, ...comparison };
        for (let count = 0; count < warmUps + runs && !signal.aborted; count++) {
          const [sample, calibration] = [await comparison.run(), await comparison.calibrate()];
          if (count < warmUps || signal.aborted) continue;
          measured.push(sample);
          calibrated.push(calibration);
        }
      });
    } catch (cause) {
      error = (cause as Error).message;
    }
    for (const figure of figures) this.#add(rowOf(this, comparison, figure, measured, calibrated, error));
  }

  /** A line whose runs were taken beside those of others. */
  add(figure: Omit<Figure, "of" | "against">, runs: readonly number[], calibrationRuns: readonly number[]): void {
    const sample = (result: number): Sample => ({ count: 1, wallMs: 1, cpuMs: {}, values: { result } });
    const of = ({ values }: Sample) => values.result ?? Number.NaN;
    const nothing = { figures: [], run: never, calibrate: never };
    this.#add(rowOf(this, nothing, { ...figure, of }, runs.map(sample), calibrationRuns.map(sample), undefined));
  }

  /** A line that can't be measured here, which is no failure. */
  skip(figure: Omit<Figure, "of" | "against">, why: string): void {
    const nothing = { figures: [], run: never, calibrate: never };
    this.#add({
      ...rowOf(this, nothing, { ...figure, of: () => Number.NaN }, [], [], why),
      verdict: "skipped",
    });
  }

  /** A whole part, or what it needs to begin, did not work. */
  fail(error: Error): void {
    const figure = { name: "the whole part", unit: "", calibration: "", targets: [], of: () => Number.NaN };
    this.#add(rowOf(this, { figures: [], run: never, calibrate: never }, figure, [], [], error.message));
  }

  #add(row: FigureRow): void {
    this.rows.push(row);
    this.options.onRow?.(row);
  }
}

const never = (): Promise<never> => Promise.reject(new Error("not measured"));

function rowOf(
  { part, options }: Bench,
  { clients = [], notes = [] }: Comparison,
  figure: Figure,
  measured: readonly Sample[],
  calibrated: readonly Sample[],
  error: string | undefined,
): FigureRow {
  const runs = measured.map(figure.of);
  const calibrationRuns = calibrated.map(figure.against ?? figure.of);
  const ratios = runs.map((run, index) => run / (calibrationRuns[index] ?? Number.NaN));
  const share = (sample: Sample, name: string) => (sample.cpuMs[name] ?? 0) / sample.wallMs;
  const perEvent = (sample: Sample, name: string) => ((sample.cpuMs[name] ?? 0) / sample.count) * 1_000;
  const [cores, calibrationCores] = [medians(measured, share), medians(calibrated, share)];
  const limits = (where: string, samples: readonly Sample[], used: Readonly<Record<string, number>>) => {
    if (spread(samples.map(({ wallMs }) => wallMs)).median < shortestMs) return [];
    const full = clients.filter((name) => (used[name] ?? 0) >= fullCore);
    return full.map((name) => `${name} is at ${used[name]?.toFixed(2)} of a core in the ${where}`);
  };
  const failed = error ?? (runs.some(Number.isFinite) ? undefined : "no run gave a number");
  return {
    part,
    size: options.size,
    figure: figure.name,
    unit: figure.unit,
    calibration: figure.calibration,
    targets: figure.targets,
    verdict: failed === undefined ? verdictOf(figure.targets, spread(runs).median, spread(ratios).median) : "failed",
    runs,
    calibrationRuns,
    ratios,
    cores,
    calibrationCores,
    counts: measured.map(({ count }) => count),
    cpuPerEvent: medians(measured, perEvent),
    calibrationCpuPerEvent: medians(calibrated, perEvent),
    clients,
    wallMs: measured.map(({ wallMs }) => wallMs),
    notes: [...notes, ...limits("figure", measured, cores), ...limits("calibration", calibrated, calibrationCores)],
    ...(failed !== undefined && { error: failed }),
  };
}

function medians(
  samples: readonly Sample[],
  of: (sample: Sample, process: string) => number,
): Readonly<Record<string, number>> {
  const names = Object.keys(samples[0]?.cpuMs ?? {});
  return Object.fromEntries(names.map((name) => [name, spread(samples.map((sample) => of(sample, name))).median]));
}

async function within(ms: number, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const over = new AbortController();
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    over.abort();
    late.reject(new Error(`not over after ${Math.round(ms / 1_000)} s`));
  }, ms);
  try {
    await Promise.race([work(over.signal), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
