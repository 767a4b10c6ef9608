import fc from "fast-check";
import { expect, it } from "vitest";
import { type LoopSpan, phases, waitsOf } from "./timeline.ts";

const ms = 1_000_000;
const span = (phase: LoopSpan["phase"], subject: string, from: number, to: number): LoopSpan => ({
  phase,
  subject,
  from: from * ms,
  to: to * ms,
});

it("a loop waits for its phases in turn, and what is between them is other", () => {
  const waits = waitsOf(100 * ms, [
    span("build", "web", 2, 40),
    span("render", "", 40, 45),
    span("deploy", "", 50, 90),
  ]);
  expect(waits.map(({ phase, from_ms, to_ms }) => [phase, from_ms, to_ms])).toEqual([
    ["other", 0, 2],
    ["build", 2, 40],
    ["render", 40, 45],
    ["other", 45, 50],
    ["deploy", 50, 90],
    ["other", 90, 100],
  ]);
});

it("a check comes before the deploy around it", () => {
  const waits = waitsOf(100 * ms, [span("deploy", "", 0, 100), span("check", "", 30, 99)]);
  expect(waits.map(({ phase, from_ms, to_ms }) => [phase, from_ms, to_ms])).toEqual([
    ["deploy", 0, 30],
    ["check", 30, 99],
    ["deploy", 99, 100],
  ]);
});

it("builds at the same time: the path that leads to the last one's end", () => {
  // web waits for base; api ends before web does, and nothing waits for it.
  const waits = waitsOf(60 * ms, [
    span("build", "base", 0, 30),
    span("build", "api", 0, 50),
    span("build", "web", 30, 60),
  ]);
  expect(waits.map(({ subject, from_ms, to_ms }) => [subject, from_ms, to_ms])).toEqual([
    ["base", 0, 30],
    ["web", 30, 60],
  ]);
});

it("whatever ran, the waits follow each other from the loop's start to its end", () => {
  const anySpan = fc.record({
    phase: fc.constantFrom(...phases),
    subject: fc.constantFrom("a", "b", "c"),
    from: fc.integer({ min: -5 * ms, max: 120 * ms }),
    to: fc.integer({ min: -5 * ms, max: 120 * ms }),
  });
  fc.assert(
    fc.property(fc.integer({ min: ms, max: 100 * ms }), fc.array(anySpan, { maxLength: 12 }), (length, spans) => {
      const waits = waitsOf(length, spans);
      expect(waits.at(0)?.from_ms).toBe(0);
      expect(waits.at(-1)?.to_ms).toBe(Math.floor(length / ms));
      for (const [index, { from_ms }] of waits.entries()) {
        if (index > 0) expect(from_ms).toBe(waits[index - 1]?.to_ms);
      }
    }),
  );
});
