import { chosen, chosenSeries, failedShare } from "../conditions.ts";
import type { Dashboard } from "../dashboard.ts";
import { graph, rows, series } from "../panel.ts";

export const failures: Dashboard = {
  uid: "tapedeck-failures",
  title: "failures",
  description: "What fails, why, and how long it takes until all is good again.",
  isChosen: true,
  panels: [
    {
      title: "Failures by phase and day",
      show: "stacked",
      queries: [
        graph(`
select date_trunc('day', failed_at) as time, phase as metric, count(*) as failures
from tapedeck.failures where ${chosen("failed_at")} group by 1, 2 order by 1, 2`),
      ],
    },
    {
      title: "Share that failed, of an hour",
      show: "lines",
      unit: "percentunit",
      queries: [series(failedShare("kind", chosenSeries), "{{kind}}")],
    },
    {
      title: "Causes",
      show: "table",
      queries: [
        rows(`
select reason, phase, min(cause) as example, count(*) as failures, count(distinct developer) as developers, max(failed_at) as last
from tapedeck.failures where ${chosen("failed_at")} group by cause_group, 1, 2 order by failures desc, last desc limit 20`),
      ],
    },
    {
      title: "Until all is good again",
      show: "table",
      queries: [
        rows(`
select failed_phase as phase, count(*) as times_red, count(green_at) as green_again, sum(loops_between) as tries,
  round(percentile_cont(0.5) within group (order by red_ms)) as red_p50_ms,
  round(percentile_cont(0.9) within group (order by red_ms)) as red_p90_ms
from tapedeck.time_to_green where ${chosen("failed_at")} group by 1 order by times_red desc`),
      ],
    },
    {
      title: "Red now",
      show: "table",
      queries: [
        rows(`
select source, failed_at as since, failed_phase as phase, cause
from tapedeck.time_to_green where ${chosen("failed_at")} and green_at is null order by failed_at desc limit 50`),
      ],
    },
    {
      title: "Last failures",
      show: "table",
      queries: [
        rows(`
select failed_at, source, phase, subject, reason, cause
from tapedeck.failures where ${chosen("failed_at")} order by failed_at desc limit 50`),
      ],
    },
  ],
};
