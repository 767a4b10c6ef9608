import { bucketBounds } from "../views/totals/buckets.ts";
import type { Total, UsedProject } from "./read-totals.ts";

/** The series of a classic histogram: its buckets, the one without a bound, sum and count. */
const histogramSeries = bucketBounds.length + 3;

/** How many series a total has. */
export function seriesOf({ kind, timed }: Pick<Total, "kind" | "timed">): number {
  return (kind === "wait" ? 0 : 1) + (timed > 0 ? histogramSeries : 0);
}

export type ChosenProjects = {
  /** Those whose operations are counted. */
  readonly counted: readonly UsedProject[];
  /** Those of them that have durations and waits, too. */
  readonly timed: readonly UsedProject[];
};

/**
 * The projects that there is room for, in the order in which they are given. Counts come first, because they are small: a
 * project without room for durations still has them.
 */
export function chooseProjects(used: readonly UsedProject[], room: number): ChosenProjects {
  let left = room;
  const whileRoom = (projects: readonly UsedProject[], sizeOf: (project: UsedProject) => number) => {
    const chosen: UsedProject[] = [];
    for (const project of projects) {
      const size = sizeOf(project);
      if (size > left) break;
      left -= size;
      chosen.push(project);
    }
    return chosen;
  };
  const counted = whileRoom(used, ({ counts }) => (counts === "" ? 0 : counts.split(",").length));
  return { counted, timed: whileRoom(counted, ({ timed }) => timed * histogramSeries) };
}
