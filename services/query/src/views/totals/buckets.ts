/** The upper ends of the buckets of durations, in milliseconds. Each has a column `le_<ms>` in operation_totals. */
export const bucketBounds = [500, 1_000, 2_000, 5_000, 10_000, 30_000, 120_000, 600_000] as const;

export type BucketColumn = `le_${(typeof bucketBounds)[number]}`;

export const bucketColumns: readonly BucketColumn[] = bucketBounds.map((ms) => `le_${ms}` as const);

/** The columns that are added up. `timed`: those whose duration is known, which the columns after it are about. */
export const figures = ["count", "timed", "sum_ms", ...bucketColumns] as const;
