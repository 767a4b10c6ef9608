import { seeded } from "@tapedeck/shared/testing/seeded";
import { it } from "vitest";
import { outputKeepsItsPosition } from "./flow.ts";
import { vagrantKillsLeaveNoTrace } from "./kills.ts";
import { type Fault, faults } from "./strike.ts";

// A few chosen faults: kill.test.ts.

const rounds = 12;

it.each([1, 2, 3, 4, 5, 6])(
  "faults at any position of the Vagrant samples change nothing that is recorded (%i)",
  async (run) => {
    const random = seeded(`vagrant faults ${run}`);
    const some = Array.from({ length: rounds }, () => faults[random.below(faults.length)] as Fault);
    await vagrantKillsLeaveNoTrace({ faults: some, tapsBeside: run % 2 === 0 });
  },
);

it.each([1, 2, 3, 4])(
  "faults while a Vagrant job writes continuously leave its output complete and in order (%i)",
  async (run) => {
    const random = seeded(`vagrant flow faults ${run}`);
    const some = Array.from({ length: rounds }, () => faults[random.below(faults.length)] as Fault);
    await outputKeepsItsPosition({ faults: some, lines: 30_000, tapsBeside: run % 2 === 0 });
  },
);
