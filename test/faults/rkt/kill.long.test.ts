import { searched } from "@tapedeck/shared/testing/searches";
import { seeded } from "@tapedeck/shared/testing/seeded";
import { it } from "vitest";
import { type Fault, faults, rktKillsLeaveNoTrace } from "./kills.ts";

const rounds = searched({ short: 6, long: 30 });

it.each(searched({ short: [1], long: [1, 2, 3, 4, 5, 6] }))(
  "killing ingest many times while all rkt hosts are played changes nothing that is recorded (%i)",
  async (run) => {
    const random = seeded(`rkt faults ${run}`);
    const some = Array.from({ length: rounds }, () => faults[random.below(faults.length)] as Fault);
    await rktKillsLeaveNoTrace({ faults: some });
  },
);

it("a given up preparation of which no ingest lives to record a second answer is recorded as a removal", async () => {
  const some = Array.from({ length: searched({ short: 4, long: 20 }) }, () => "both" as const);
  await rktKillsLeaveNoTrace({ faults: some, folders: ["03-prepare-aborted"] });
});
