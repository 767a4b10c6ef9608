import { join } from "node:path";
import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { expect, it } from "vitest";
import type { TapItem } from "../../tap.ts";
import { timestampOf } from "../frame-timestamp.ts";
import { FiledProcesses } from "./filed-processes.ts";

const fixture = recordings.skaffold;
const { messages } = loadRecording(join(fixture, "12-skaffold-build-one-shot"));
const build = messages.v1.flatMap(({ bytes }) => {
  const timestamp = timestampOf(bytes);
  return timestamp === undefined ? [] : [{ channel: "v1" as const, bytes, timestamp }];
});
const never = new AbortController().signal;

it("a long row is read as whole processes, of which few wait in memory", async () => {
  const items: TapItem[] = [];
  const bytes = build.reduce((sum, frame) => sum + frame.bytes.byteLength + 200, 0);
  const processes = new FiledProcesses((item) => items.push(item), 2 * bytes);
  const reportedAt: number[] = [];
  for (let run = 0; run < 6; run++) {
    for (const { timestamp, ...frame } of build) {
      processes.add({ ...frame, timestamp: { ...timestamp, seconds: timestamp.seconds + BigInt(run * 60) } });
      if (processes.isFull) await processes.emit(never, { isMoreToCome: true });
    }
    reportedAt.push(items.length);
  }
  expect(reportedAt[2]).toBeGreaterThan(0);
  await processes.emit(never);
  const ends = items.flatMap(({ what }, at) => (what?.$case === "closed" ? [at] : []));
  expect(ends).toHaveLength(6);
  expect(items.filter(({ what }) => what?.$case === "frame")).toHaveLength(6 * build.length);
});
