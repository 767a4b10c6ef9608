import { expect, it } from "vitest";
import { millisecondsBetween, storedTimestamp, timestampOf } from "./timestamp.ts";

it.each([
  [{ seconds: 0n, nanos: 0 }, "1970-01-01T00:00:00.000000Z", 0],
  [{ seconds: 1_700_000_000n, nanos: 123_456_789 }, "2023-11-14T22:13:20.123456Z", 789],
  [{ seconds: -1n, nanos: 999_999_999 }, "1969-12-31T23:59:59.999999Z", 999],
  [{ seconds: -62_135_596_800n, nanos: 1 }, "0001-01-01T00:00:00.000000Z", 1],
  [{ seconds: 253_402_300_799n, nanos: 0 }, "9999-12-31T23:59:59.000000Z", 0],
])("%o is %s and %i ns, and comes back", (timestamp, at, ns) => {
  expect(storedTimestamp(timestamp)).toEqual({ at, ns });
  expect(timestampOf(at, ns)).toEqual(timestamp);
});

it.each([
  [{ seconds: 253_402_300_800n, nanos: 0 }],
  [{ seconds: -62_135_596_801n, nanos: 0 }],
  [{ seconds: 0n, nanos: -1 }],
  [{ seconds: 0n, nanos: 1_000_000_000 }],
  [undefined],
])("%o is unknown", (timestamp) => {
  expect(storedTimestamp(timestamp)).toEqual({ at: null, ns: 0 });
});

const dayMs = 24 * 3_600_000;
const day = BigInt(dayMs) / 1_000n;

it("whole milliseconds count", () => {
  const start = storedTimestamp({ seconds: 1_700_000_010n, nanos: 999_999_999 });
  const until = (seconds: bigint, nanos: number) =>
    millisecondsBetween(start, storedTimestamp({ seconds, nanos }), dayMs);
  expect(until(1_700_000_011n, 1_999_998)).toBe(1);
  expect(until(1_700_000_011n, 1_999_999)).toBe(2);
  expect(millisecondsBetween(start, storedTimestamp(undefined), dayMs)).toBeNull();
});

it.each([
  ["of a clock that was never set", 12n, 1_700_000_000n],
  ["that ends with such a clock", 1_700_000_000n, 12n],
  ["that ends more than a minute before its start", 1_700_000_061n, 1_700_000_000n],
  ["that is longer than anything of its kind", 1_700_000_000n, 1_700_000_001n + day],
])("a duration %s is none", (_, from, to) => {
  const at = (seconds: bigint) => storedTimestamp({ seconds, nanos: 0 });
  expect(millisecondsBetween(at(from), at(to), dayMs)).toBeNull();
});

it("an end that is a little before its start, as of parallel senders, is a duration of 0", () => {
  const at = (seconds: bigint) => storedTimestamp({ seconds, nanos: 0 });
  expect(millisecondsBetween(at(1_700_000_060n), at(1_700_000_000n), dayMs)).toBe(0);
});
