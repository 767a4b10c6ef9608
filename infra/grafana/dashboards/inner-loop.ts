import { chosen, chosenSeries } from "../conditions.ts";
import type { Dashboard } from "../dashboard.ts";
import { graph, rows, series } from "../panel.ts";

const loops = `kind="loop",${chosenSeries}`;

export const innerLoop: Dashboard = {
  uid: "tapedeck-inner-loop",
  title: "inner loop",
  description: "How long developers wait for their dev loops, and for what.",
  isChosen: true,
  panels: [
    {
      title: "Loops",
      show: "numbers",
      width: 12,
      queries: [
        rows(`
select count(*) as loops, count(*) filter (where outcome = 'failed') as failed, count(*) filter (where overtaken) as overtaken
from tapedeck.loop_times where ${chosen("started_at")}`),
      ],
    },
    {
      title: "Until a good loop is ready",
      show: "numbers",
      unit: "ms",
      width: 12,
      queries: [
        rows(`
select percentile_cont(0.5) within group (order by ready_ms) as half, percentile_cont(0.9) within group (order by ready_ms) as "90 %"
from tapedeck.loop_times where ${chosen("started_at")}`),
      ],
    },
    {
      title: "Waits by phase and day",
      description: "The waits add up to the loops: each moment belongs to the one step that a loop waited for.",
      show: "stacked",
      unit: "ms",
      queries: [
        graph(`
select date_trunc('day', started_at) as time, sum(sync_ms) as sync, sum(build_ms) as build, sum(test_ms) as test,
  sum(render_ms) as render, sum(deploy_ms) as deploy, sum(check_ms) as "check", sum(other_ms) as other
from tapedeck.loop_times where ${chosen("started_at")} group by 1 order by 1`),
      ],
    },
    {
      title: "Ready loops by day",
      show: "lines",
      unit: "ms",
      queries: [
        graph(`
select date_trunc('day', started_at) as time, percentile_cont(0.5) within group (order by ready_ms) as half,
  percentile_cont(0.9) within group (order by ready_ms) as "90 %"
from tapedeck.loop_times where ${chosen("started_at")} group by 1 order by 1`),
      ],
    },
    {
      title: "Loops an hour",
      show: "stacked",
      queries: [series(`sum by (outcome) (increase(tapedeck_operations_total{${loops}}[1h]))`, "{{outcome}}")],
    },
    {
      title: "Wait for a phase, on average of an hour",
      show: "lines",
      unit: "s",
      queries: [
        series(
          `sum by (phase) (increase(tapedeck_wait_seconds_sum{${chosenSeries}}[1h])) / sum by (phase) (increase(tapedeck_wait_seconds_count{${chosenSeries}}[1h]))`,
          "{{phase}}",
        ),
      ],
    },
    {
      title: "Projects",
      show: "table",
      width: 24,
      queries: [
        rows(`
select workspace, project, count(*) as loops, count(*) filter (where outcome = 'failed') as failed,
  count(distinct developer) as developers, round(percentile_cont(0.5) within group (order by ready_ms)) as ready_p50_ms,
  round(percentile_cont(0.9) within group (order by ready_ms)) as ready_p90_ms, sum(duration_ms) as waited_ms
from tapedeck.loop_times where ${chosen("started_at")} group by 1, 2 order by waited_ms desc nulls last limit 50`),
      ],
    },
  ],
};
