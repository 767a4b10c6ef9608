import { expect, it } from "vitest";
import { LogQuota } from "./log-quota.ts";

it("a log that has room is not asked for its bytes while nothing is published", () => {
  let reads = 0;
  const bytes = async () => {
    reads++;
    return 0;
  };
  const quota = new LogQuota({ workspace: "acme", maxBytes: 1_000, bytes });
  expect([quota.whyFull(), quota.whyFull()]).toEqual([undefined, undefined]);
  expect(reads).toBe(0);
});
