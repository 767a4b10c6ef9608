import { fileURLToPath } from "node:url";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { type DeepPartial, LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import { expect, it } from "vitest";
import { eventTypes, isOfType, loopStartOf } from "./v1-frame.ts";

const timestamp = { seconds: 1_700_000_000n, nanos: 123_456_789 };
const frame = (entry: DeepPartial<LogEntry>) => LogEntry.encode(LogEntry.fromPartial(entry)).finish();
const loop = (status: string, more: DeepPartial<LogEntry> = { timestamp }) =>
  frame({ ...more, event: { event_type: { $case: "devLoopEvent", value: { iteration: 1, status } } } });

it("shows when a loop begins, and nothing else", () => {
  expect(loopStartOf(loop("In Progress"))).toEqual(timestamp);
  expect(loopStartOf(loop("Succeeded"))).toBeUndefined();
  const build = { $case: "buildEvent", value: { artifact: "web", status: "In Progress" } } as const;
  expect(loopStartOf(frame({ timestamp, event: { event_type: build } }))).toBeUndefined();
  expect(loopStartOf(frame({ timestamp, entry: "In Progress" }))).toBeUndefined();
});

it("shows nothing of a loop without a time, and of bytes that are no frame", () => {
  expect(loopStartOf(loop("In Progress", {}))).toBeUndefined();
  expect(loopStartOf(loop("In Progress", { timestamp: { seconds: 1n << 60n, nanos: 0 } }))).toBeUndefined();
  for (const length of [1, 5, 12, 20]) expect(loopStartOf(loop("In Progress").subarray(0, length))).toBeUndefined();
  expect(loopStartOf(Buffer.from("garbage"))).toBeUndefined();
  expect(loopStartOf(Buffer.alloc(0))).toBeUndefined();
});

it("finds what a recording's loops are, whatever stands in its frames", () => {
  const folder = new URL("../../../fakes/recordings/skaffold/01-dev-success-3-artifacts-5-iterations", import.meta.url);
  const frames = loadRecording(fileURLToPath(folder)).messages.v1.map(({ bytes }) => bytes);
  const starts = frames.filter((bytes) => {
    const type = LogEntry.decode(bytes).event?.event_type;
    return type?.$case === "devLoopEvent" && type.value.status === "In Progress";
  });
  expect(starts).toHaveLength(5);
  expect(frames.filter((bytes) => loopStartOf(bytes) !== undefined)).toEqual(starts);
  const types = [eventTypes.metaEvent, eventTypes.devLoopEvent];
  const isOne = (bytes: Buffer) =>
    ["metaEvent", "devLoopEvent"].includes(LogEntry.decode(bytes).event?.event_type?.$case ?? "");
  expect(frames.map((bytes) => isOfType(bytes, ...types))).toEqual(frames.map(isOne));
});
