import { nanosOfTimestamp, timestampOfNanos } from "@tapedeck/shared/time/timestamp";
import { describe, expect, it } from "vitest";
import { goDuration, makeStamps, plus } from "./stamps.ts";

describe("stamps", () => {
  const start = Date.parse("2030-01-01T00:00:00Z");

  it("have no time twice, and ULIDs of now", () => {
    const { now, id } = makeStamps(() => start);
    const [first, second] = [now(), now()];
    expect(nanosOfTimestamp(first)).toBe(BigInt(start) * 1_000_000n);
    expect(nanosOfTimestamp(second)).toBeGreaterThan(nanosOfTimestamp(first));
    expect(id()).toMatch(/^01[0-9A-HJKMNP-TV-Z]{24}$/);
  });

  it("are lent to one call, in order, and what is left over is not used by the next", () => {
    const { now, id, lend } = makeStamps(() => start);
    const times = [timestampOfNanos(1n), timestampOfNanos(2n), timestampOfNanos(3n)];
    const got = lend({ times, ids: ["A", "B"] }, () => [now(), now(), id()]);
    expect(got).toEqual([timestampOfNanos(1n), timestampOfNanos(2n), "A"]);
    expect(now().seconds).toBe(BigInt(start / 1_000));
    expect(id()).not.toBe("B");
  });
});

it.each([
  ["30s", 30_000_000_000n],
  ["1m30s", 90_000_000_000n],
  ["-2s", -2_000_000_000n],
  ["+1.5h", 5_400_000_000_000n],
  [".5ms", 500_000n],
  ["10us", 10_000n],
  ["0", 0n],
  ["", undefined],
  ["30", undefined],
  ["soon", undefined],
  ["1s ", undefined],
  ["-", undefined],
])("takes %j for %s ns", (text, nanos) => {
  expect(goDuration(text)).toBe(nanos);
});

it("counts on from a time", () => {
  expect(plus({ seconds: 1n, nanos: 999_999_999 }, 2n)).toEqual({ seconds: 2n, nanos: 1 });
});
