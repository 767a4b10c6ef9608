export const sampleNames = ["up", "up-shipped-cli"] as const;
export type SampleName = (typeof sampleNames)[number];

/**
 * The faults of a server in the middle of a sample:
 *
 * - killed: its process ends at once, and a new one starts;
 * - crashed: the same, caused by a request that ends it;
 * - left: the same, but it exits by itself, as a vagrant command does;
 * - cut off: the network is away for some steps, and then the process is killed;
 * - cut: the network is away for some steps, and the process keeps running;
 * - late: the process and the network keep running; the server sends what it held back some steps later.
 */
export const fates = ["killed", "crashed", "left", "cut off", "cut", "late"] as const;
export type Fate = (typeof fates)[number];

export type Kill = {
  readonly sample: SampleName;
  readonly fate: Fate;
  /** The number of steps done before it. */
  readonly place: number;
  /** After so many steps, waits until all that is then known is recorded; at most `place`. */
  readonly received: number;
  /** After so many steps the server holds this back: at least `received`. */
  readonly mute: number;
  readonly muted: readonly Muted[];
};

/** `list`: the answers of _ListJobs. */
export const muted = ["output", "states", "list"] as const;
export type Muted = (typeof muted)[number];
