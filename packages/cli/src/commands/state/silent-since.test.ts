import { expect, it } from "vitest";
import { lasted } from "../sessions/run.ts";
import { silentSinceText } from "./run.ts";

it("says since when a source is not heard", () => {
  const text = silentSinceText("2026-11-22T10:03:07.123456789Z", Date.parse("2026-11-22T10:08:10Z"));
  expect(text).toBe("last seen 2026-11-22T10:03:07Z (5 min ago)");
});

it.each([
  ["running", null, null],
  ["unknown", null, "nothing more was received from it"],
  ["1 min 5 s", "2026-11-22T10:01:05Z", "process ended"],
  ["unknown", "2026-11-22T09:01:05Z", "process ended, and the clock was set back"],
  ["unknown", "1970-01-01T00:01:05Z", "process ended"],
])("prints the length of a session as %s", (text, endedAt, endReason) => {
  expect(lasted({ startedAt: "2026-11-22T10:00:00Z", endedAt, endReason })).toBe(text);
});
