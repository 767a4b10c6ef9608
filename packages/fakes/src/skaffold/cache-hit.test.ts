import { join } from "node:path";
import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import { expect, it } from "vitest";
import { recordings } from "../recordings.ts";
import { withCacheHit } from "./cache-hit.ts";
import { loadRecording, type RecordedUpstream } from "./recording.ts";
import { repeatedPart } from "./timed.ts";

/** The ends of builds on v1, by loop. */
function buildsOf({ messages }: RecordedUpstream): readonly (readonly string[])[] {
  const loops: string[][] = [];
  for (const { bytes } of messages.v1) {
    const event = LogEntry.decode(bytes).event?.event_type;
    if (event?.$case === "devLoopEvent" && event.value.status === "In Progress") loops.push([]);
    if (event?.$case !== "buildEvent" || event.value.status === "In Progress") continue;
    loops.at(-1)?.push(`${event.value.artifact} ${event.value.status}`);
  }
  return loops;
}

it("a build that is found in the cache leaves the failed build of the loop before it as it was", () => {
  const recording = loadRecording(join(recordings.skaffold, "31-dev-compilers-and-tests-fail"));
  const [first, failed, mended, ...others] = buildsOf(recording);
  expect([failed, mended]).toEqual([["api Failed"], ["api Complete"]]);
  const withHit = withCacheHit(recording, repeatedPart(recording).from);
  expect(buildsOf(withHit)).toEqual([first, failed, [], ...others]);
});
