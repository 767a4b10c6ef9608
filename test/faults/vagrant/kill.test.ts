import { it } from "vitest";
import { outputKeepsItsPosition } from "./flow.ts";
import { vagrantKillsLeaveNoTrace } from "./kills.ts";

it("killing ingest, log and gateway while Vagrant jobs run changes nothing that is recorded of them", async () => {
  await vagrantKillsLeaveNoTrace({ faults: ["answered", "gateway", "both", "cut"] });
}, 600_000);

it("killing ingest and log while a job writes continuously misplaces no line", async () => {
  await outputKeepsItsPosition({ faults: ["answered", "both"], lines: 2_000, tapsBeside: true });
}, 600_000);
