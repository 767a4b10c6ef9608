import type { Dashboard } from "../dashboard.ts";
import { rows, series } from "../panel.ts";

export const recorder: Dashboard = {
  uid: "tapedeck-recorder",
  title: "the recorder's health",
  description: "Whether everything is recorded and shown, and how far behind it is.",
  isChosen: false,
  from: "now-6h",
  panels: [
    {
      title: "Alerts",
      show: "table",
      queries: [{ promql: 'ALERTS{alertname=~"Tapedeck.*",alertstate="firing"}' }],
    },
    {
      title: "Ready",
      show: "lines",
      queries: [series("min by (service, check) (tapedeck_ready)", "{{service}}: {{check}}")],
    },
    {
      title: "Recorded events a second",
      show: "lines",
      queries: [series("sum by (source) (rate(tapedeck_ingest_events_total[$__rate_interval]))", "{{source}}")],
    },
    {
      title: "Frames a second, by what became of them",
      show: "stacked",
      queries: [series("sum by (what) (rate(tapedeck_ingest_frames_total[$__rate_interval]))", "{{what}}")],
    },
    {
      title: "Items that wait to be recorded",
      show: "lines",
      queries: [series("sum by (source) (tapedeck_ingest_spill_items)", "{{source}}")],
    },
    {
      title: "Messages that the tables are behind",
      show: "lines",
      queries: [series("max by (workspace) (tapedeck_query_lag_events)", "{{workspace}}")],
    },
    {
      title: "Time of a batch",
      show: "lines",
      unit: "s",
      queries: [0.5, 0.99].map((quantile) =>
        series(
          `histogram_quantile(${quantile}, sum by (le) (rate(tapedeck_query_batch_seconds_bucket[$__rate_interval])))`,
          `${quantile * 100} %`,
        ),
      ),
    },
    {
      title: "Turns of the event loops",
      show: "lines",
      unit: "s",
      queries: [
        series('max by (service) (nodejs_eventloop_lag_p99_seconds{service=~"ingest|query|gateway"})', "{{service}}"),
      ],
    },
    {
      title: "Open streams",
      show: "lines",
      queries: [series("sum by (instance) (tapedeck_gateway_streams)", "{{instance}}")],
    },
    {
      title: "Projects and workspaces on query's metrics",
      show: "lines",
      queries: ["projects", "workspaces"].map((what) =>
        series(`sum by (has) (tapedeck_query_metrics_${what})`, `${what}: {{has}}`),
      ),
    },
    {
      title: "Sources",
      show: "table",
      queries: [
        rows(`
select source, status, connected, gaps, last_event_at, not_heard_since
from tapedeck.sources order by last_event_at desc nulls last limit 100`),
      ],
    },
    {
      title: "Events that could not be applied",
      show: "table",
      queries: [
        rows(`
select source, events, last_at, (
  select e.error from tapedeck.set_aside_events e where e.source = s.source order by e.position desc limit 1) as last_error
from tapedeck.set_aside_sources s order by last_at desc limit 50`),
      ],
    },
  ],
};
