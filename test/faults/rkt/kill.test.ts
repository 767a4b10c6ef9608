import { searched } from "@tapedeck/shared/testing/searches";
import { it } from "vitest";
import { rktKillsLeaveNoTrace } from "./kills.ts";

it("killing ingest between any polls of a rkt host changes nothing that is recorded", async () => {
  await rktKillsLeaveNoTrace({
    faults: ["answered", "hanging", "asked", "log", "both", "stopped"],
  });
}, 600_000);

it("a given up preparation of which no ingest lives to record a second answer is recorded as a removal", async () => {
  const some = Array.from({ length: searched({ short: 4, long: 20 }) }, () => "both" as const);
  await rktKillsLeaveNoTrace({ faults: some, folders: ["03-prepare-aborted"] });
});
