import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ImportedProcess } from "@tapedeck/tap/skaffold/event-log/split-processes";
import { afterAll, beforeAll, expect, it } from "vitest";
import { grpcTarget } from "../../grpc-target.ts";
import { startRecorder } from "../../testing/recorder.ts";
import { pushProcesses } from "./push-processes.ts";

const spill = mkdtempSync(join(tmpdir(), "push-processes-"));
const before = process.env.TAPEDECK_SPILL;
beforeAll(() => {
  process.env.TAPEDECK_SPILL = spill;
});
afterAll(() => {
  if (before === undefined) delete process.env.TAPEDECK_SPILL;
  else process.env.TAPEDECK_SPILL = before;
  rmSync(spill, { recursive: true });
});

function processes(count: number, frames: number): ImportedProcess[] {
  return Array.from({ length: count }, (_, number) => ({
    maybeContinues: false,
    frames: Array.from({ length: frames }, (_, index) => ({
      channel: "v1" as const,
      bytes: Buffer.from(`process ${number}, frame ${index}`),
      timestamp: { seconds: BigInt(1_000 * number + index), nanos: 0 },
    })),
  }));
}

it("all processes come through one push, in order, in far fewer messages than they have frames", async () => {
  await using recorder = await startRecorder();
  const reported: number[] = [];
  const source = await pushProcesses(processes(40, 250), {
    developer: "alice",
    project: "shop",
    file: "events.log",
    labels: { ticket: "1" },
    redact: "on",
    target: grpcTarget(recorder.url, {}),
    onRecorded: (messages) => reported.push(messages),
  });
  expect(source).toBe("default/alice/shop/skaffold");
  expect(recorder.hellos).toMatchObject([{ project: "shop", labels: { imported: "true", ticket: "1" } }]);
  const texts = recorder.items.flatMap(({ what }) => (what?.$case === "frame" ? [String(what.value.bytes)] : []));
  expect(texts).toEqual(processes(40, 250).flatMap(({ frames }) => frames.map(({ bytes }) => String(bytes))));
  expect(recorder.items.filter(({ what }) => what?.$case === "closed")).toHaveLength(40);
  expect(reported.at(-1)).toBe(10_080);
  // 10,080 items and the hello.
  expect(recorder.requests()).toBeLessThan(20);
});
