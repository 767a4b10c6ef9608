import { expect, it } from "vitest";
import { nanosOfTimestamp, timestampOfNanos } from "./timestamp.ts";

it("nanoseconds go into whole seconds and what is left, and back", () => {
  expect(timestampOfNanos(-100_000_000n)).toEqual({ seconds: -1n, nanos: 900_000_000 });
  for (const nanos of [0n, -1n, 1n, 1_795_188_504_368_852_000n, -3_000_000_000n]) {
    expect(nanosOfTimestamp(timestampOfNanos(nanos))).toBe(nanos);
  }
});
