import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import { msOfTimestamp } from "@tapedeck/shared/time/timestamp";
import { expect, it } from "vitest";
import { recordings } from "../recordings.ts";
import { inThePast } from "./past.ts";
import { loadRecording } from "./recording.ts";

it("a process of the past has rising loops in its own time, and ends well", () => {
  const recording = loadRecording(`${recordings.skaffold}/04-deploy-failure-then-recovery`);
  const until = Date.parse("2026-03-04T17:00:00Z");
  const { messages } = inThePast(recording, { until, slower: 10 });
  const loops = messages.v1.flatMap(({ bytes }) => {
    const { event, timestamp } = LogEntry.decode(bytes);
    const type = event?.event_type;
    if (type?.$case !== "devLoopEvent" || timestamp === undefined) return [];
    return [{ ...type.value, at: msOfTimestamp(timestamp) }];
  });
  const ends = loops.filter(({ status }) => status !== "In Progress");
  expect(ends.map(({ iteration, status }) => `${iteration} ${status}`)).toEqual([
    ...["0 Succeeded", "1 Failed", "2 Succeeded", "3 Failed"],
    ...["4 Failed", "5 Succeeded"],
  ]);
  const times = loops.map(({ at }) => at);
  expect(times).toEqual(times.toSorted((a, b) => a - b));
  const [first = 0, last = 0] = [Math.min(...times), Math.max(...times)];
  expect([first, last].map((at) => new Date(at).toISOString().slice(0, 13))).toEqual([
    "2026-03-04T14",
    "2026-03-04T16",
  ]);
});
