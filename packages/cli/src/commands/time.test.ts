import { expect, it } from "vitest";
import { parseTime, positionOrTime } from "./time.ts";

/** A Wednesday, in this machine's zone. */
const now = new Date(2026, 3, 15, 16, 30);
const at = (day: number, hour = 0, minute = 0) => new Date(2026, 3, day, hour, minute);

it.each([
  ["10m", at(15, 16, 20)],
  ["2h", at(15, 14, 30)],
  ["3d", at(12, 16, 30)],
  ["90s", new Date(2026, 3, 15, 16, 28, 30)],
  ["now", now],
  ["yesterday", at(14)],
  ["today", at(15)],
  ["monday", at(13)],
  ["friday", at(10)],
  ["last friday 14:00", at(10, 14)],
  ["2 hours ago", at(15, 14, 30)],
  ["9:30", at(15, 9, 30)],
  ["2026-04-01", at(1)],
  ["2026-01-31T12:00:00Z", new Date("2026-01-31T12:00:00Z")],
])("%s is a time", (text, time) => expect(parseTime(text, now)).toEqual(time));

it.each(["", "10", "soon", "yesterday or so", "monday to friday", "abc-12", "start"])("%j is none", (text) =>
  expect(parseTime(text, now)).toBeUndefined(),
);

it("may be a place in the log as well", () => {
  expect(positionOrTime("383600-t3k9x2", now)).toBe("383600-t3k9x2");
  expect(positionOrTime("start", now)).toBe("start");
  expect(positionOrTime("10m", now)).toBe(at(15, 16, 20).toISOString());
  expect(positionOrTime("soon", now)).toBeUndefined();
});
