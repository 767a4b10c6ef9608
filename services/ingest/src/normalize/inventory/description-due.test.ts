import { timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { expect, it } from "vitest";
import { DescriptionDue } from "./description-due.ts";
import type { ObservationOutcome } from "./observing.ts";

const text = (ms: number) =>
  ({
    what: "frame",
    observedAt: timestampOfMs(ms),
    facts: [{ kind: "terminal.written", detail: { $case: "text", value: {} } }],
  }) as unknown as ObservationOutcome;

it("a description is due at half of the time for which the log keeps text", () => {
  const due = new DescriptionDue(1_000, 60);
  due.count(text(1_000));
  due.count(text(20_000));
  expect(due.isDue(timestampOfMs(30_999))).toBe(false);
  expect(due.isDue(timestampOfMs(31_000))).toBe(true);
});

it("a clock that is set back makes a description due, and not wait until the clock is there again", () => {
  const due = new DescriptionDue(1_000, 60);
  due.count(text(86_400_000));
  expect(due.isDue(timestampOfMs(1_000))).toBe(true);
});
