import { type Processes, type ProcessorTimes, readProcessorTimes, since } from "./processor-time.ts";

/** One run of a figure or of its calibration. */
export type Sample = {
  /** Events, deliveries or requests, as the client has counted them. */
  readonly count: number;
  readonly wallMs: number;
  readonly cpuMs: ProcessorTimes;
  /** Anything else that a figure takes from this run. */
  readonly values: Readonly<Record<string, number>>;
};

/** What a run did. `wallMs`: when the caller knows better than from start to end. */
export type Ran = {
  readonly count: number;
  readonly wallMs?: number;
  readonly values?: Readonly<Record<string, number>>;
};

/** Runs something and reads the processor time of the processes that take part. */
export async function sampled(processes: Processes, run: () => Promise<Ran>): Promise<Sample> {
  const before = readProcessorTimes(processes);
  const start = performance.now();
  const { count, wallMs, values = {} } = await run();
  const took = performance.now() - start;
  return { count, wallMs: wallMs ?? took, cpuMs: since(before, readProcessorTimes(processes)), values };
}

export const perSecond = ({ count, wallMs }: Sample): number => (count / wallMs) * 1_000;

export const value =
  (name: string) =>
  ({ values }: Sample): number =>
    values[name] ?? Number.NaN;

/** How many cores these processes used together. */
export const cores =
  (names: readonly string[]) =>
  ({ cpuMs, wallMs }: Sample): number =>
    names.reduce((sum, name) => sum + (cpuMs[name] ?? 0), 0) / wallMs;

/** Processor time per event of these processes together, in µs. */
export const cpuPerEvent =
  (names: readonly string[]) =>
  ({ cpuMs, count }: Sample): number =>
    (names.reduce((sum, name) => sum + (cpuMs[name] ?? 0), 0) / count) * 1_000;
