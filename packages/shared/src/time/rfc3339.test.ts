import fc from "fast-check";
import { expect, it } from "vitest";
import { parseRfc3339 } from "./rfc3339.ts";

it.each([
  "2026-02-30T00:00:00Z",
  "2026-02-29T00:00:00Z",
  "2026-04-31T12:00:00+02:00",
  "2026-13-01T00:00:00Z",
  "2026-00-10T00:00:00Z",
  "2026-01-00T00:00:00Z",
  "2026-01-01T24:00:00Z",
  "2026-01-01T12:60:00Z",
  "2026-01-01T12:00:61Z",
  "2026-01-01T12:00:00+24:00",
  "2026-01-01T12:00:00+01:75",
  "9999-12-31T23:59:59-14:00",
  "0001-01-01T00:00:00+14:00",
  "0000-01-01T00:00:00Z",
  "2026-01-01T12:00:00",
  "2026-01-01",
  "12026-01-01T12:00:00Z",
  "",
])("refuses %j", (text) => {
  expect(parseRfc3339(text)).toBeUndefined();
});

it.each([
  ["2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000Z"],
  ["2026-01-31T12:00Z", "2026-01-31T12:00:00.000Z"],
  ["2026-01-31t12:00:00.123456789z", "2026-01-31T12:00:00.123Z"],
  ["2026-01-31T23:30:00 01:00", "2026-01-31T22:30:00.000Z"],
  ["2026-01-31T23:30:00-01:00", "2026-02-01T00:30:00.000Z"],
  ["9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"],
  ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"],
])("reads %j", (text, time) => {
  expect(parseRfc3339(text)?.toISOString()).toBe(time);
});

it("reads every time that it wrote, and shows no other day than the text", () => {
  const bounds = { min: new Date("0001-01-01T00:00:00Z"), max: new Date("9999-12-31T23:59:59.999Z") };
  fc.assert(
    fc.property(fc.date({ ...bounds, noInvalidDate: true }), (date) => {
      expect(parseRfc3339(date.toISOString())).toEqual(date);
    }),
  );
  const part = (max: number) => fc.integer({ min: 0, max }).map((number) => String(number).padStart(2, "0"));
  fc.assert(
    fc.property(part(99), part(13), part(32), part(25), part(61), (year, month, day, hour, minute) => {
      const text = `20${year}-${month}-${day}T${hour}:${minute}:00`;
      const time = parseRfc3339(`${text}Z`);
      if (time !== undefined) expect(time.toISOString().slice(0, 19)).toBe(text);
    }),
  );
});
