import { chosen, chosenSeries, failedShare } from "../conditions.ts";
import type { Dashboard } from "../dashboard.ts";
import { graph, rows, series } from "../panel.ts";

const builds = `kind="build",${chosenSeries}`;

export const buildsDashboard: Dashboard = {
  uid: "tapedeck-builds",
  title: "builds",
  description: "How many builds there are, how long they take, and which artifacts are slow or flaky.",
  isChosen: true,
  from: "now-30d",
  panels: [
    {
      title: "Builds by day",
      show: "stacked",
      queries: [
        graph(`
select day::timestamptz as time, sum(builds - failed) as succeeded, sum(failed) as failed, sum(cached) as cached,
  sum(canceled) as canceled
from tapedeck.build_times_daily where ${chosen("day::timestamptz")} group by 1 order by 1`),
      ],
    },
    {
      title: "Builds an hour",
      show: "stacked",
      queries: [series(`sum by (outcome) (increase(tapedeck_operations_total{${builds}}[1h]))`, "{{outcome}}")],
    },
    {
      title: "Duration of builds",
      show: "lines",
      unit: "s",
      queries: [0.5, 0.9].map((quantile) =>
        series(
          `histogram_quantile(${quantile}, sum by (le) (increase(tapedeck_operation_duration_seconds_bucket{${builds}}[1h])))`,
          `${quantile * 100} %`,
        ),
      ),
    },
    {
      title: "Share that failed",
      show: "lines",
      unit: "percentunit",
      queries: [series(failedShare("project", builds), "{{project}}")],
    },
    {
      title: "Artifacts that took longest",
      show: "table",
      queries: [
        rows(`
select workspace, project, artifact, sum(builds) as builds, sum(built_ms) as built_ms, round(max(p90_ms)) as slowest_day_p90_ms,
  max(developers) as most_developers_a_day
from tapedeck.slowest_artifacts where ${chosen("day::timestamptz")} group by 1, 2, 3 order by built_ms desc limit 20`),
      ],
    },
    {
      title: "Flaky artifacts",
      description: "Artifacts with failed builds that the next build did not repeat.",
      show: "table",
      queries: [
        rows(`
select workspace, project, artifact, sum(builds) as builds, sum(failed) as failed, sum(flakes) as flakes
from tapedeck.flaky_artifacts where ${chosen("day::timestamptz")} group by 1, 2, 3 order by flakes desc limit 20`),
      ],
    },
  ],
};
