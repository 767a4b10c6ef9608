/** Samples, one a minute in Prometheus' notation, and what a rule records of them after an hour. */
export type RecordingCase = {
  readonly series: Readonly<Record<string, string>>;
  readonly records: readonly { readonly labels: string; readonly value: number }[];
};

const place = 'workspace="acme",project="shop"';
const counter = (kind: string, outcome: string, more = "") =>
  `tapedeck_operations_total{${place},kind="${kind}",outcome="${outcome}"${more}}`;
const bucket = (le: string) =>
  `tapedeck_operation_duration_seconds_bucket{${place},kind="build",outcome="succeeded",le="${le}"}`;

/** A half of the 120 builds took up to one second, the others up to five. */
const durations = { [bucket("1")]: "0+1x120", [bucket("5")]: "0+2x120", [bucket("+Inf")]: "0+2x120" };

/** By the name of what is recorded. */
export const recordingCases: Readonly<Record<string, RecordingCase>> = {
  "tapedeck:operations:increase1h": {
    // A second query takes the workspace over. Prometheus extrapolates both counts to the minute between them.
    series: {
      [counter("loop", "succeeded", ',instance="query-1"')]: "0+2x30 _x90",
      [counter("loop", "succeeded", ',instance="query-2"')]: "_x30 60+2x90",
      [counter("loop", "failed", ',instance="query-1"')]: "7x120",
    },
    records: [
      { labels: `{${place},kind="loop",outcome="failed"}`, value: 0 },
      { labels: `{${place},kind="loop",outcome="succeeded"}`, value: 122 },
    ],
  },
  "tapedeck:operations_failed:ratio1h": {
    series: {
      [counter("build", "succeeded")]: "0+3x120",
      [counter("build", "failed")]: "0+1x120",
      [counter("build", "cached")]: "0+9x120",
      // Nothing in this hour.
      [counter("deploy", "failed")]: "5x120",
      // None has ever failed.
      [counter("test", "succeeded")]: "0+1x120",
    },
    records: [
      { labels: `{${place},kind="build"}`, value: 0.25 },
      { labels: `{${place},kind="test"}`, value: 0 },
    ],
  },
  "tapedeck:operation_duration_seconds:p50_1h": {
    series: durations,
    records: [{ labels: `{${place},kind="build"}`, value: 1 }],
  },
  "tapedeck:operation_duration_seconds:p90_1h": {
    series: durations,
    records: [{ labels: `{${place},kind="build"}`, value: 4.2 }],
  },
  "tapedeck:wait_seconds:increase1h": {
    series: { [`tapedeck_wait_seconds_sum{${place},phase="build"}`]: "0+1.5x120" },
    records: [{ labels: `{${place},phase="build"}`, value: 90 }],
  },
};
