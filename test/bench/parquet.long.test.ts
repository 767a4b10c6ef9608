import { testParts } from "./testing/test-parts.ts";

// It fills tables by itself, and so needs some that no other part has filled. A day of a million rows: export-of-a-day.nightly.test.ts.
testParts(["parquet"]);
