import fc from "fast-check";
import { expect, it } from "vitest";
import { msOfTimestamp, nanosOfTimestamp, timestampOfMs, timestampOfNanos } from "./timestamp.ts";

it("nanoseconds go into whole seconds and what is left, and back", () => {
  expect(timestampOfNanos(-100_000_000n)).toEqual({ seconds: -1n, nanos: 900_000_000 });
  for (const nanos of [0n, -1n, 1n, 1_795_188_504_368_852_000n, -3_000_000_000n]) {
    expect(nanosOfTimestamp(timestampOfNanos(nanos))).toBe(nanos);
  }
});

it("a timestamp of milliseconds with any fraction has less than a second of nanoseconds", () => {
  expect(timestampOfMs(1_999.999_9)).toEqual({ seconds: 2n, nanos: 0 });
  expect(timestampOfMs(-0.000_1)).toEqual({ seconds: 0n, nanos: 0 });
  fc.assert(
    fc.property(fc.double({ min: -6.2e13, max: 2.5e14, noNaN: true }), (ms) => {
      const timestamp = timestampOfMs(ms);
      expect(timestamp.nanos).toBeGreaterThanOrEqual(0);
      expect(timestamp.nanos).toBeLessThan(1_000_000_000);
      expect(Math.abs(msOfTimestamp(timestamp) - ms)).toBeLessThan(0.1);
    }),
  );
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }), (nanos) => {
      const timestamp = timestampOfNanos(nanos);
      expect([timestamp.nanos >= 0 && timestamp.nanos < 1e9, nanosOfTimestamp(timestamp)]).toEqual([true, nanos]);
    }),
  );
});
