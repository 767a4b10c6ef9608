import { expect, it } from "vitest";
import { randomCuts } from "../transports/random-cuts.ts";

it("100 random cuts over all transports: every event once, in order, nothing else", async () => {
  const result = await randomCuts(100);
  console.log(JSON.stringify(result));
  // Checks that readers and the network were cut, on every transport.
  expect(Object.keys(result.by).length).toBeGreaterThanOrEqual(8);
  expect(result.restarts).toBeGreaterThan(0);
}, 600_000);
