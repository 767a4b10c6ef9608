import { expect, it } from "vitest";
import { agoText, tookText } from "./durations.ts";

it.each([
  ["4.2 s", { startedAt: "2026-11-22T10:00:00Z", endedAt: "2026-11-22T10:00:04.2Z", durationMs: 4_200 }],
  ["unknown", { startedAt: "1970-01-01T00:00:07Z", endedAt: "2026-11-22T10:00:04.2Z", durationMs: null }],
  ["-", { startedAt: null, endedAt: "2026-11-22T10:00:04.2Z", durationMs: null }],
  ["-", { startedAt: "2026-11-22T10:00:00Z", endedAt: null, durationMs: null }],
])("an operation took %s", (text, operation) => {
  expect(tookText(operation)).toBe(text);
});

it.each([
  ["2 min ago", "2026-11-22T10:00:00Z"],
  ["-", "1970-01-01T00:00:07Z"],
  ["-", null],
])("%s: %s", (text, time) => {
  expect(agoText(time, Date.UTC(2026, 10, 22, 10, 2))).toBe(text);
});
