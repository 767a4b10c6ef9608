import { chosen, chosenSeries, isChosen } from "../conditions.ts";
import type { Dashboard } from "../dashboard.ts";
import { graph, rows, series } from "../panel.ts";

export const machines: Dashboard = {
  uid: "tapedeck-machines",
  title: "machines",
  description: "Vagrant's commands and machines, and the pods of rkt's hosts.",
  isChosen: true,
  panels: [
    {
      title: "Commands by day",
      show: "stacked",
      queries: [
        graph(`
select date_trunc('day', started_at) as time, command as metric, count(*) as commands
from tapedeck.command_times where ${chosen("started_at")} group by 1, 2 order by 1, 2`),
      ],
    },
    {
      title: "Commands an hour",
      show: "stacked",
      queries: [
        series(
          `sum by (outcome) (increase(tapedeck_operations_total{kind="command",${chosenSeries}}[1h]))`,
          "{{outcome}}",
        ),
      ],
    },
    {
      title: "Commands by machine",
      show: "table",
      queries: [
        rows(`
select command, machine, box, count(*) as commands, count(*) filter (where outcome = 'failed') as failed,
  round(percentile_cont(0.5) within group (order by duration_ms)) as p50_ms, max(duration_ms) as slowest_ms
from tapedeck.vagrant_command_times where ${chosen("started_at")} group by 1, 2, 3 order by commands desc, 1, 2 limit 50`),
      ],
    },
    {
      title: "Machines",
      show: "table",
      queries: [
        rows(`
select source, name, state, machine_state, provider, box_name, box_version from (
  select distinct on (source, project_name, name) * from tapedeck.vagrant_targets
  where ${isChosen("split_part(source, '/', 1)", "workspace")} and ${isChosen("split_part(source, '/', 3)", "project")}
  order by source, project_name, name, last_position desc) newest_session
where not gone order by 1, 2 limit 100`),
      ],
    },
    {
      title: "Pods that began, by day",
      show: "stacked",
      queries: [
        graph(`
select date_trunc('day', started_at) as time, coalesce(outcome, 'runs') as metric, count(*) as pods
from tapedeck.pod_runs where ${chosen("started_at")} group by 1, 2 order by 1, 2`),
      ],
    },
    {
      title: "Apps that failed",
      show: "table",
      queries: [
        rows(`
select o.source, image_name, app, o.exit_code, count(*) as apps
from tapedeck.operations o join tapedeck.rkt_apps a on a.session = o.session and a.pod || '/' || a.app = o.subject
where o.kind = 'app' and o.exit_code > 0 and ${chosen("ended_at")}
group by 1, 2, 3, 4 order by apps desc, 1, 3 limit 50`),
      ],
    },
  ],
};
