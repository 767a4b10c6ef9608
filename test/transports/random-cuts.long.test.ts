import { searched } from "@tapedeck/shared/testing/searches";
import { expect, it } from "vitest";
import { randomCuts } from "./random-cuts.ts";

const cuts = searched({ short: 1_000, long: 5_000 });

it(`${cuts} random cuts over all transports: every event once, in order, nothing else`, async () => {
  const result = await randomCuts(cuts);
  console.log(JSON.stringify(result));
  expect(Object.keys(result.by).length).toBeGreaterThanOrEqual(8);
  expect(result.restarts).toBeGreaterThan(0);
}, 1_800_000);
