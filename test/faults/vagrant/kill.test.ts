import { test } from "vitest";
import { outputIsPlaced } from "./flow.ts";
import { vagrantKillsLeaveNoTrace } from "./kills.ts";

test("kill -9 of ingest, log and gateway while Vagrant's jobs run changes nothing that is recorded of them", async () => {
  await vagrantKillsLeaveNoTrace({ faults: ["answered", "gateway", "both", "cut"] });
}, 300_000);

test("kill -9 of ingest and log while a job writes and writes puts no line in a wrong place", async () => {
  await outputIsPlaced({ faults: ["answered", "both"], lines: 2_000, tapsBeside: true });
}, 300_000);
