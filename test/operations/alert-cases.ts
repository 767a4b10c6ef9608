/** Series of samples, one a minute in Prometheus' notation, and when the alert is quiet and when it fires. */
export type AlertCase = {
  readonly series: Readonly<Record<string, string>>;
  readonly quietAt: readonly string[];
  readonly firesAt: string;
  /** The labels of what fires, besides the severity. */
  readonly labels: Readonly<Record<string, string>>;
  readonly summary: string;
};

const shop = "acme/alice/shop/skaffold";
const at = (service: string) => ({ service, instance: `${service}-1` });

/** By the name of the alert; several for one that fires in several ways. */
export const alertCases: Readonly<Record<string, readonly AlertCase[]>> = {
  TapedeckServiceDown: [
    {
      series: { 'up{job="tapedeck-ingest",instance="in-1"}': "1x5 0x20", 'up{job="node",instance="in-1"}': "0x30" },
      quietAt: ["5m", "6m"],
      firesAt: "8m",
      labels: { job: "tapedeck-ingest", instance: "in-1" },
      summary: "tapedeck-ingest at in-1 does not answer.",
    },
  ],
  TapedeckNotReady: [
    {
      series: {
        'tapedeck_ready{service="query",instance="query-1",check="database"}': "1x5 0x20",
        'tapedeck_ready{service="query",instance="query-1",check="log"}': "1x30",
      },
      quietAt: ["5m", "7m"],
      firesAt: "9m",
      labels: { ...at("query"), check: "database" },
      summary: "query at query-1 is not ready: database.",
    },
  ],
  TapedeckLogDiskFull: [
    {
      series: { 'tapedeck_ingest_log_full{instance="ingest-1"}': "0x5 1x3 0x10" },
      quietAt: ["5m", "12m"],
      firesAt: "6m",
      labels: { instance: "ingest-1" },
      summary: "Nothing is recorded: the log's disk is full.",
    },
  ],
  TapedeckWorkspaceFull: [
    {
      series: { 'tapedeck_ingest_logs_at_quota{instance="ingest-1"}': "0x5 2x5 0x10" },
      quietAt: ["5m", "12m"],
      firesAt: "8m",
      labels: { instance: "ingest-1" },
      summary: "Nothing is recorded in 2 workspaces: their logs are as large as they may be.",
    },
  ],
  TapedeckLogDamaged: [
    {
      series: { [`tapedeck_ingest_log_lost_events{source="${shop}"}`]: "0x5 3x2000" },
      quietAt: ["5m", "25h"],
      firesAt: "10m",
      labels: { source: shop },
      summary: `The log has lost 3 events of ${shop}: its files are damaged.`,
    },
    {
      // An ingest that has just started, on a log that was damaged before.
      series: { [`tapedeck_ingest_log_lost_events{source="${shop}"}`]: "3x2000" },
      quietAt: ["25h"],
      firesAt: "1m",
      labels: { source: shop },
      summary: `The log has lost 3 events of ${shop}: its files are damaged.`,
    },
  ],
  TapedeckRecordingLost: [
    {
      series: { [`tapedeck_ingest_spill_dropped{source="${shop}"}`]: "0x15 50x60" },
      quietAt: ["15m", "40m"],
      firesAt: "17m",
      labels: { source: shop },
      summary: `The spill of ${shop} is full: what the upstream sends is lost.`,
    },
  ],
  TapedeckSpillGrows: [
    {
      series: {
        [`tapedeck_ingest_spill_items{source="${shop}"}`]: "0x5 2000x20 0x20",
        // Waits often, and never for long.
        'tapedeck_ingest_spill_items{source="acme/bob/shop/skaffold"}': "2000x8 0 2000x8 0 2000x8 0",
      },
      quietAt: ["12m", "30m"],
      firesAt: "20m",
      labels: { source: shop },
      summary: `For 10 minutes at least 2000 items of ${shop} have waited to be recorded.`,
    },
  ],
  TapedeckPublishFailures: [
    {
      series: {
        [`tapedeck_ingest_publish_failures_total{source="${shop}",instance="ingest-1",outcome="unknown"}`]: "0+2x60",
        [`tapedeck_ingest_publish_failures_total{source="${shop}",instance="ingest-1",outcome="refused"}`]: "0+1x60",
      },
      quietAt: ["9m"],
      firesAt: "30m",
      labels: { instance: "ingest-1", outcome: "unknown" },
      summary: "The log has not acknowledged 20 writes in 10 minutes (unknown).",
    },
  ],
  TapedeckHostAway: [
    {
      series: {
        'tapedeck_ingest_connected{source="acme/h1/host/rkt"}': "1x5 0x30",
        [`tapedeck_ingest_connected{source="${shop}"}`]: "0x40",
      },
      quietAt: ["5m", "15m"],
      firesAt: "17m",
      labels: { source: "acme/h1/host/rkt" },
      summary: "The rkt host acme/h1/host/rkt has not answered for 10 minutes.",
    },
  ],
  TapedeckFramesUnreadable: [
    {
      series: {
        [`tapedeck_ingest_frames_total{source="${shop}",channel="v1",what="unreadable"}`]: "_x5 1x200",
        [`tapedeck_ingest_frames_total{source="${shop}",channel="v1",what="recorded"}`]: "0+9x200",
      },
      quietAt: ["4m", "80m"],
      firesAt: "8m",
      labels: { source: shop, channel: "v1" },
      summary: `${shop} sends frames on v1 that this version can't read.`,
    },
    {
      series: { [`tapedeck_ingest_frames_total{source="${shop}",channel="v1",what="unreadable"}`]: "1x100 2x100" },
      quietAt: ["90m", "180m"],
      firesAt: "110m",
      labels: { source: shop, channel: "v1" },
      summary: `${shop} sends frames on v1 that this version can't read.`,
    },
  ],
  TapedeckTablesBehind: [
    {
      series: { 'tapedeck_query_lag_events{instance="query-1"}': "0x5 2000x20 3x20" },
      quietAt: ["14m", "30m"],
      firesAt: "17m",
      labels: { instance: "query-1" },
      summary: "The tables have been 2000 messages behind the log for 10 minutes.",
    },
  ],
  TapedeckProjectingInterrupted: [
    {
      series: {
        'tapedeck_query_interruptions_total{instance="query-1"}': "0+1x60 60x60",
        'tapedeck_query_interruptions_total{instance="query-2"}': "0x30 2x90",
      },
      quietAt: ["1m", "110m"],
      firesAt: "40m",
      labels: { instance: "query-1" },
      summary: "Postgres or the log went away 30 times in 30 minutes.",
    },
  ],
  TapedeckEventsSetAside: [
    {
      series: { [`tapedeck_query_set_aside_events{source="${shop}"}`]: "_x5 3x2000" },
      quietAt: ["4m", "25h"],
      firesAt: "8m",
      labels: { source: shop },
      summary: `3 events of ${shop} can't be applied to the tables.`,
    },
    {
      series: { [`tapedeck_query_set_aside_events{source="${shop}"}`]: "1x2000 2x2000" },
      quietAt: ["30h", "60h"],
      firesAt: "34h",
      labels: { source: shop },
      summary: `2 events of ${shop} can't be applied to the tables.`,
    },
  ],
  TapedeckStateDrift: [
    {
      series: { [`tapedeck_query_fold_drift_total{source="${shop}"}`]: "_x5 1x200" },
      quietAt: ["4m", "80m"],
      firesAt: "8m",
      labels: { source: shop },
      summary: `The state of ${shop} differed from its recorded events.`,
    },
    {
      series: { [`tapedeck_query_fold_drift_total{source="${shop}"}`]: "1x100 2x100" },
      quietAt: ["90m", "180m"],
      firesAt: "110m",
      labels: { source: shop },
      summary: `The state of ${shop} differed from its recorded events.`,
    },
  ],
  TapedeckSinkBehind: [
    {
      series: {
        'tapedeck_gateway_sink_lag_seconds{workspace="acme",sink="ci",instance="gateway-1"}': "0x5 660x20 0x10",
        'tapedeck_gateway_sink_lag_seconds{workspace="acme",sink="ops",instance="gateway-1"}': "30x40",
      },
      quietAt: ["5m", "7m", "30m"],
      firesAt: "10m",
      labels: { workspace: "acme", sink: "ci", instance: "gateway-1" },
      summary: "The sink ci of acme is 660 s behind.",
    },
  ],
  TapedeckSinkParked: [
    {
      series: { 'tapedeck_gateway_sink_parked{workspace="acme",sink="ci",instance="gateway-1"}': "0x5 2x20 0x10" },
      quietAt: ["5m", "9m", "30m"],
      firesAt: "15m",
      labels: { workspace: "acme", sink: "ci", instance: "gateway-1" },
      summary: "2 events of the sink ci of acme are parked: its target refuses them.",
    },
  ],
  TapedeckBuildsFail: [
    {
      series: {
        'tapedeck_operations_total{workspace="acme",project="shop",kind="build",outcome="failed"}':
          "0x60 0+2x90 180x200",
        'tapedeck_operations_total{workspace="acme",project="shop",kind="build",outcome="succeeded"}': "0+1x400",
        // The same number fails, and many more succeed.
        'tapedeck_operations_total{workspace="acme",project="big",kind="build",outcome="failed"}': "0x60 0+2x300",
        'tapedeck_operations_total{workspace="acme",project="big",kind="build",outcome="succeeded"}': "0+9x400",
        // All of a few.
        'tapedeck_operations_total{workspace="acme",project="small",kind="build",outcome="failed"}':
          "0x60 0 1 2 3 3x300",
      },
      quietAt: ["60m", "100m", "260m"],
      firesAt: "121m",
      labels: { workspace: "acme", project: "shop" },
      summary: "More than half of the builds of shop in acme fail: 120 in an hour.",
    },
  ],
  TapedeckMetricsIncomplete: [
    {
      series: {
        'tapedeck_query_metrics_projects{instance="query-1",has="none"}': "0x5 12x90 0x30",
        'tapedeck_query_metrics_projects{instance="query-1",has="counts"}': "900x120",
      },
      quietAt: ["5m", "60m", "110m"],
      firesAt: "70m",
      labels: { instance: "query-1", has: "none" },
      summary: "The metrics of query at query-1 leave out 12 projects or workspaces.",
    },
    {
      series: { 'tapedeck_query_metrics_workspaces{instance="query-1",has="none"}': "0x5 3x90 0x30" },
      quietAt: ["5m", "110m"],
      firesAt: "70m",
      labels: { instance: "query-1", has: "none" },
      summary: "The metrics of query at query-1 leave out 3 projects or workspaces.",
    },
  ],
  TapedeckInternalErrors: [
    {
      series: {
        'tapedeck_gateway_errors_total{api="api",code="internal"}': "_x5 1x200",
        'tapedeck_gateway_errors_total{api="tapedeck grpc",code="not_ready"}': "_x5 0+5x200",
      },
      quietAt: ["4m", "30m"],
      firesAt: "8m",
      labels: { api: "api" },
      summary: "Clients of api got internal errors.",
    },
    {
      series: { 'tapedeck_gateway_errors_total{api="api",code="internal"}': "1x100 2x100" },
      quietAt: ["90m", "120m"],
      firesAt: "105m",
      labels: { api: "api" },
      summary: "Clients of api got internal errors.",
    },
  ],
  TapedeckEventLoopHeld: [
    {
      series: {
        'nodejs_eventloop_lag_p99_seconds{service="query",instance="query-1"}': "0.1x5 0.75x30",
        'nodejs_eventloop_lag_p99_seconds{service="another",instance="a"}': "9x40",
      },
      quietAt: ["5m", "15m"],
      firesAt: "17m",
      labels: at("query"),
      summary: "query at query-1 answers late: turns of its event loop take 0.75 s.",
    },
  ],
  TapedeckFilesExhausted: [
    {
      series: {
        'process_open_fds{service="gateway",instance="gateway-1"}': "100x5 900x30",
        'process_max_fds{service="gateway",instance="gateway-1"}': "1024x40",
      },
      quietAt: ["5m", "10m"],
      firesAt: "12m",
      labels: at("gateway"),
      summary: "gateway at gateway-1 uses most of the files and sockets that it may open.",
    },
  ],
  TapedeckCertificateExpires: [
    {
      series: {
        'tapedeck_certificate_expiry_timestamp_seconds{service="gateway",setting="tls"}': "1000000x200",
        'tapedeck_certificate_expiry_timestamp_seconds{service="query",setting="services.tls"}': "9000000x200",
      },
      quietAt: ["30m"],
      firesAt: "90m",
      labels: { service: "gateway", setting: "tls" },
      summary: "The certificate tls of gateway expires in 11d 12h 16m 40s.",
    },
  ],
};
