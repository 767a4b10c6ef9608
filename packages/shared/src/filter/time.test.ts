import { expect, it } from "vitest";
import { offsetOf } from "../log/offset.ts";
import { parseWhen } from "./time.ts";

it.each([
  ["start", { type: "start" }],
  ["now", { type: "now" }],
  ["383600-t3k9x2", { type: "position", position: { epoch: "t3k9x2", offset: offsetOf(10_482) } }],
  ["2026-11-20T17:00:00Z", { type: "time", time: new Date(Date.UTC(2026, 10, 20, 17)) }],
  ["2026-11-20T17:00Z", { type: "time", time: new Date(Date.UTC(2026, 10, 20, 17)) }],
  ["2026-11-20t18:00:00.123456789+01:00", { type: "time", time: new Date(Date.UTC(2026, 10, 20, 17, 0, 0, 123)) }],
  ["2026-11-20T18:00:00 01:00", { type: "time", time: new Date(Date.UTC(2026, 10, 20, 17)) }],
  ["2026-11-20T12:00:00-05:00", { type: "time", time: new Date(Date.UTC(2026, 10, 20, 17)) }],
])("%j names a point in the log", (text, when) => {
  expect(parseWhen(text)).toEqual(when);
});

it.each(["", "yesterday", "2026-11-20", "2026-11-20T17:00:00", "2026-13-20T17:00:00Z", "t3k9x2-", "t3k9x2-07", "5"])(
  "%j does not name a point in the log",
  (text) => {
    expect(parseWhen(text)).toBeUndefined();
  },
);
