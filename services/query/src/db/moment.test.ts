import { expect, it } from "vitest";
import { millisecondsBetween, momentOf, timestampOf } from "./moment.ts";

it.each([
  [{ seconds: 0n, nanos: 0 }, "1970-01-01T00:00:00.000000Z", 0],
  [{ seconds: 1_700_000_000n, nanos: 123_456_789 }, "2023-11-14T22:13:20.123456Z", 789],
  [{ seconds: -1n, nanos: 999_999_999 }, "1969-12-31T23:59:59.999999Z", 999],
  [{ seconds: -62_135_596_800n, nanos: 1 }, "0001-01-01T00:00:00.000000Z", 1],
  [{ seconds: 253_402_300_799n, nanos: 0 }, "9999-12-31T23:59:59.000000Z", 0],
])("%o is %s and %i ns, and comes back", (timestamp, at, ns) => {
  expect(momentOf(timestamp)).toEqual({ at, ns });
  expect(timestampOf(at, ns)).toEqual(timestamp);
});

it.each([
  [{ seconds: 253_402_300_800n, nanos: 0 }],
  [{ seconds: -62_135_596_801n, nanos: 0 }],
  [{ seconds: 0n, nanos: -1 }],
  [{ seconds: 0n, nanos: 1_000_000_000 }],
  [undefined],
])("%o is unknown", (timestamp) => {
  expect(momentOf(timestamp)).toEqual({ at: null, ns: 0 });
});

it("whole milliseconds count", () => {
  const start = momentOf({ seconds: 10n, nanos: 999_999_999 });
  expect(millisecondsBetween(start, momentOf({ seconds: 11n, nanos: 1_999_998 }))).toBe(1);
  expect(millisecondsBetween(start, momentOf({ seconds: 11n, nanos: 1_999_999 }))).toBe(2);
  expect(millisecondsBetween(start, momentOf(undefined))).toBeNull();
});
