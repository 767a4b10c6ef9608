import { expect, test } from "vitest";
import { randomCuts } from "./random-cuts.ts";

test("5,000 random cuts over all transports: every event once, in order, nothing else", async () => {
  const result = await randomCuts(5_000);
  console.log(JSON.stringify(result));
  expect(Object.keys(result.by).length).toBeGreaterThanOrEqual(8);
  expect(result.restarts).toBeGreaterThan(0);
}, 1_800_000);
