import { test } from "vitest";
import { vagrantKillsLeaveNoTrace } from "./vagrant-kills.ts";

test("kill -9 of ingest, log and gateway while Vagrant's jobs run changes nothing that is recorded of them", async () => {
  await vagrantKillsLeaveNoTrace({ faults: ["told", "away", "gateway", "both", "cut", "told"] });
}, 120_000);
