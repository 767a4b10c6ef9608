import { bucketBounds } from "../views/totals/buckets.ts";

/** The series of a classic histogram: its buckets, the one without a bound, sum and count. */
const histogramSeries = bucketBounds.length + 3;

/** How many counters and how many histograms a project or a workspace has. */
export type Size = { readonly counters: number; readonly histograms: number };

export type Chosen<T> = {
  /** Those whose operations are counted. */
  readonly counted: readonly T[];
  /** Those of them that have durations and waits, too. */
  readonly timed: readonly T[];
  /** How many series these are. */
  readonly series: number;
};

/**
 * The ones that there is room for, in the order in which they are given. Counts come first, because they are small: one
 * without room for durations still has them.
 */
export function chooseInRoom<T>(all: readonly T[], room: number, sizeOf: (one: T) => Size): Chosen<T> {
  let left = room;
  const whileRoom = (some: readonly T[], seriesOf: (one: T) => number) => {
    const chosen: T[] = [];
    for (const one of some) {
      const series = seriesOf(one);
      if (series > left) break;
      left -= series;
      chosen.push(one);
    }
    return chosen;
  };
  const counted = whileRoom(all, (one) => sizeOf(one).counters);
  const timed = whileRoom(counted, (one) => sizeOf(one).histograms * histogramSeries);
  return { counted, timed, series: room - left };
}
