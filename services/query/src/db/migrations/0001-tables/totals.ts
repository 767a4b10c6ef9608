/** What /metrics has of the recorded work, summed by project, so that a scrape need not count it. */
export const totalTables: readonly string[] = [
  `create table operation_totals (
    workspace text not null,
    project text not null,
    -- Of an operation; "wait": what dev loops waited for.
    kind text not null,
    -- "cached": a build that the cache answered. Empty for waits.
    outcome text not null,
    -- Of waits: that of the loop. Otherwise empty.
    phase text not null,
    count bigint not null,
    -- Those whose duration is known. The columns after it are of these.
    timed bigint not null,
    sum_ms bigint not null,
    -- How many took at most so long: the buckets of a Prometheus histogram. See bucketBounds.
    le_500 bigint not null,
    le_1000 bigint not null,
    le_2000 bigint not null,
    le_5000 bigint not null,
    le_10000 bigint not null,
    le_30000 bigint not null,
    le_120000 bigint not null,
    le_600000 bigint not null,
    -- When the log stored the last event that was counted.
    last_at timestamptz not null,
    primary key (workspace, project, kind, outcome, phase)
  ) with (fillfactor = 70)`,
];
