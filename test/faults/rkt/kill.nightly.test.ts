import { seeded } from "@tapedeck/shared/testing/seeded";
import { it } from "vitest";
import { type Fault, faults, rktKillsLeaveNoTrace } from "./kills.ts";

// A few chosen faults: kill.test.ts.

const rounds = 30;

it.each([1, 2, 3, 4, 5, 6])(
  "killing ingest many times while all rkt hosts are played changes nothing that is recorded (%i)",
  async (run) => {
    const random = seeded(`rkt faults ${run}`);
    const some = Array.from({ length: rounds }, () => faults[random.below(faults.length)] as Fault);
    await rktKillsLeaveNoTrace({ faults: some });
  },
);
