import { expect, it } from "vitest";
import { agoText, bytesText, durationText } from "./durations.ts";

it.each([
  [0, "0 ms"],
  [340, "340 ms"],
  [4_200, "4.2 s"],
  [200_000, "3 min 20 s"],
  [120_000, "2 min"],
  [7_500_000, "2 h 5 min"],
  [273_600_000, "3 d 4 h"],
])("%d ms read %s", (ms, text) => {
  expect(durationText(ms)).toBe(text);
});

it("prints how long ago something was", () => {
  const now = Date.parse("2026-01-31T12:00:00Z");
  expect(agoText("2026-01-31T11:59:59.9Z", now)).toBe("now");
  expect(agoText("2026-01-31T11:59:48Z", now)).toBe("12 s ago");
  expect(agoText("2026-01-31T11:57:00Z", now)).toBe("3 min ago");
  expect(agoText("2026-01-29T11:57:00Z", now)).toBe("2 d ago");
  expect(agoText(null, now)).toBe("-");
});

it("prints bytes", () => {
  expect([0, 1_023, 1_024, 1_572_864, 3 * 1_024 ** 3].map(bytesText)).toEqual([
    "0 B",
    "1023 B",
    "1.0 KiB",
    "1.5 MiB",
    "3.0 GiB",
  ]);
});
