export const sampleNames = ["up", "up-shipped-cli"] as const;
export type SampleName = (typeof sampleNames)[number];

/**
 * What happens to a server in the middle of a sample:
 *
 * - killed: its process ends at once, and a new one starts;
 * - crashed: the same by a request that ends it;
 * - left: the same by its own will, as a vagrant command ends;
 * - cut off: the network is away for some steps, and then the process is killed;
 * - cut: the network is away for some steps, and the process lives on;
 * - late: the process lives on, and so does the network; the server sends what it held back some steps later.
 */
export const fates = ["killed", "crashed", "left", "cut off", "cut", "late"] as const;
export type Fate = (typeof fates)[number];

export type Kill = {
  readonly sample: SampleName;
  readonly fate: Fate;
  /** So many steps are done by then. */
  readonly place: number;
  /** After so many steps it is waited until all is recorded that is known by then; no more than `place`. */
  readonly heard: number;
  /** After so many steps the server keeps this back: not before `heard`. */
  readonly mute: number;
  readonly muted: readonly Muted[];
};

/** `list`: the answers of _ListJobs. */
export const muted = ["output", "states", "list"] as const;
export type Muted = (typeof muted)[number];
