import { differenceKinds } from "../schemas/comparison.ts";
import { failureDifference } from "./failure-difference.ts";
import { settingDifferences } from "./setting-differences.ts";
import type { SideSummary } from "./side-summary.ts";
import { cacheDifferences, changedDifferences, durationDifferences, platformDifferences } from "./step-differences.ts";
import { storyOf } from "./story.ts";
import {
  artifactDifferences,
  commandDifference,
  debuggerDifferences,
  fileDifferences,
  gapDifference,
  labelDifferences,
  portDifferences,
  resourceDifferences,
  versionDifference,
} from "./value-differences.ts";
import type { Compared } from "./weighed.ts";

/**
 * The differences between two sides, the most informative first. The points of a difference are those of its kind (a
 * version or a setting breaks more than a host's name), and more where the failure's own words lead to it: they name
 * it, or they are known to result from it. A failure with a clear reason ranks among the first; one that only reports
 * that something failed ranks after its possible explanations. Steps after the failed one did not happen and are left
 * out.
 */
export function differencesOf(left: SideSummary, right: SideSummary | undefined): Compared {
  const story = storyOf(left, right);
  const ofBoth =
    right === undefined
      ? []
      : [
          ...[versionDifference, commandDifference, labelDifferences, settingDifferences, artifactDifferences],
          ...[resourceDifferences, portDifferences, debuggerDifferences, gapDifference],
          ...[platformDifferences, changedDifferences, cacheDifferences, fileDifferences],
        ].map((compare) => compare(left, right, story));
  const all = [failureDifference(left, right), durationDifferences(left, right, story), ...ofBoth];
  return {
    differences: all
      .flatMap(({ differences }) => differences)
      .toSorted(
        (a, b) =>
          b.points - a.points ||
          differenceKinds.indexOf(a.kind) - differenceKinds.indexOf(b.kind) ||
          a.subject.localeCompare(b.subject, "en"),
      ),
    same: all.flatMap(({ same }) => same),
  };
}
