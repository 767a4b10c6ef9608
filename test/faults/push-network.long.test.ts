import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording, type RecordedUpstream } from "@tapedeck/fakes/skaffold/recording";
import { Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import { searched } from "@tapedeck/shared/testing/searches";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { sentFrames } from "../harness/ingest-harness.ts";
import { comesAndGoes, ended, pushHarness } from "./push-network.ts";
import { framesOf } from "./recorded-events.ts";

const recording = (name: string) => loadRecording(join(recordings.skaffold, name));

const faults = searched({ short: 8, long: 70 });

it.each([
  "01-dev-success-3-artifacts-5-iterations",
  "05-control-api-auto-off",
  "10-status-check-port-forward-sync-app-logs",
])("many network faults change nothing in the log, %s", (name) =>
  comesAndGoes({ recording: name, faults, kills: searched({ short: 2, long: 6 }), isCompared: true }),
);

it("a network that drops all packets is noticed, and Skaffold never waits meanwhile", async () => {
  await using harness = await pushHarness();
  const long = recording("05-control-api-auto-off");
  const wild = await harness.record("wild", { recording: long, over: "network" });
  await wild.fake.playUntil({ v1: 20 });
  await wild.recorded();
  for (const [at, sign] of [
    [40, "quiet"],
    [60, "with things on their way"],
  ] as const) {
    if (sign === "quiet") harness.network.weather = "hole";
    const lost = () => wild.cli.stdout().split("not recorded for now").length - 1;
    const before = lost();
    await wild.fake.playUntil({ v1: at });
    harness.network.weather = "hole";
    expect([wild.fake.health.v1.stalled, wild.fake.health.v2.stalled]).toEqual([false, false]);
    const since = performance.now();
    await until(() => lost() > before, { message: "the tap to miss its Tapedeck" });
    console.log(`${sign}: noticed after ${Math.round(performance.now() - since)} ms`);
    harness.network.weather = "fine";
    await wild.recorded();
  }
  await wild.fake.play();
  await wild.recorded();
  await ended(wild);
  for (const channel of ["v1", "v2", "logs"] as const) {
    expect(framesOf(await wild.events(), channel)).toEqual(sentFrames(long, channel));
  }
});

it("events of a long network outage wait on the disk and not in memory", async () => {
  await using harness = await pushHarness();
  const lines = 4_000;
  const wild = await harness.record("wild", { recording: talkative(lines, 64 * 1024), over: "network" });
  await until(() => wild.cli.stdout().includes("recording as"), { message: "the tap to be welcome" });
  const calm = memoryOf(wild.cli.child.pid);
  harness.network.weather = "hole";
  await wild.fake.play();
  expect(wild.fake.health.v2.stalled).toBe(false);
  const waiting = filesIn(wild.spill);
  console.log(
    `${lines} frames of 64 KiB: ${waiting >> 20} MiB on disk, ${memoryOf(wild.cli.child.pid) >> 10} MiB of memory at most, ${calm >> 10} before`,
  );
  // The spill keeps 64 MiB of it in memory, and as much may be in flight from Skaffold and to the disk.
  expect(waiting).toBeGreaterThan(150 << 20);
  expect(memoryOf(wild.cli.child.pid) - calm).toBeLessThan(250 << 10);
  harness.network.weather = "fine";
  const since = performance.now();
  const recorded = async () => (await wild.events()).filter(({ event }) => event.channel === "v2").length;
  await until(async () => (await recorded()) === lines, { message: "all of it", deadlineMs: 300_000 });
  console.log(`recorded ${Math.round(performance.now() - since)} ms after the network was back`);
  await ended(wild);
  expect(filesIn(wild.spill)).toBe(0);
});

/** A recording with so much console output, all of it at once. */
function talkative(lines: number, bytes: number): RecordedUpstream {
  const plain = recording("12-skaffold-build-one-shot");
  const at = plain.messages.v1[0]?.at ?? 0;
  const v2 = Array.from({ length: lines }, (_, index) => {
    const value = { task_id: "", subtask_id: "", level: 7, message: `line ${index} ${"x".repeat(bytes)}\n` } as const;
    const timestamp = { seconds: BigInt(index), nanos: 0 };
    return {
      at,
      bytes: Buffer.from(Event.encode({ timestamp, event_type: { $case: "skaffoldLogEvent", value } }).finish()),
    };
  });
  return { ...plain, messages: { ...plain.messages, v2 } };
}

/** The peak memory of a process, in KiB. */
function memoryOf(pid: number | undefined): number {
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

function filesIn(folder: string): number {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith(".spill"));
  return files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
}
