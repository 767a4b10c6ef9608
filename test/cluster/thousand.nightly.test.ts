import { join } from "node:path";
import { startNatsServer } from "@tapedeck/infra/local/nats-server";
import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { openLog } from "@tapedeck/shared/log/jetstream";
import type { LogReader } from "@tapedeck/shared/log/log";
import { logStart } from "@tapedeck/shared/log/offset";
import { delay } from "@tapedeck/shared/sync/delay";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { connect } from "nats";
import { expect, inject, it } from "vitest";
import { percentiles } from "../bench/frame/percentiles.ts";
import { machineMs, ownMs, type Processes, readProcessorTimes, since } from "../bench/frame/processor-time.ts";
import { PushedSource, WorkspaceLink } from "../bench/frame/pushed-source.ts";
import { startServiceProcess } from "../faults/service-process.ts";

// A nats-server and an ingest. 1,000 sources of eight workspaces push to them from this process.

const workspaces = 8;
const sources = 1_000;
/** Frames of each source, five a second: first while sessions begin and processes warm up, then as they are measured. */
const rounds = { first: 25, measured: 50 };
const roundMs = 200;
/** The sources of a group speak at the same moment. */
const groups = 20;

it("a thousand sources of eight workspaces are recorded once each, in their order", { timeout: 900_000 }, async () => {
  await using cleanup = new AsyncDisposableStack();
  // Not in the folder of the other servers, which may be in memory: each message is to be synced to a disk.
  const { folder } = cleanup.use(await temporaryFolder());
  const dataDir = join(folder, "nats");
  const server = cleanup.use(await startNatsServer({ binary: inject("natsServer"), dataDir, port: 0 }));
  const ingest = cleanup.use(await startIngest(server.url, join(folder, "spill")));
  const all = Array.from({ length: workspaces }, (_, at) => `team-${at}`).flatMap((workspace) => {
    const { link } = cleanup.use(new WorkspaceLink(ingest.addresses.grpc ?? "", workspace));
    const projects = Array.from({ length: sources / workspaces }, (_, at) => `p${at}`);
    return projects.map((project) => cleanup.use(new PushedSource(link, workspace, project)));
  });
  await speak(all, rounds.first);
  await measured(all, { nats: server.pid, ingest: ingest.pid });

  const nats = cleanup.adopt(await connect({ servers: server.url }), (nc) => nc.close());
  for (const [workspace, ofIt] of Map.groupBy(all, (source) => source.workspace)) {
    const { reader } = cleanup.use(await openLog(nats, { workspace, syncKnown: true }));
    const expected = new Map(ofIt.map(({ project, frames }) => [project, frames]));
    expect(framesOfEach(await eventsOf(reader))).toEqual(expected);
    console.log(`${workspace}: ${(await reader.bounds()).messages} messages`);
  }
});

function startIngest(nats: string, spill: string) {
  return startServiceProcess("ingest", {
    TAPEDECK_NATS_URL: nats,
    TAPEDECK_NATS_SYNC_ALWAYS: "true",
    TAPEDECK_SOURCES: "[]",
    TAPEDECK_INGEST_SPILL_DIR: spill,
  });
}

/** All speak at their pace, whether what they said is recorded or not. Resolves when all of it is. */
async function speak(
  all: readonly PushedSource[],
  times: number,
): Promise<{ readonly saidMs: number; readonly tookMs: number }> {
  const began = performance.now();
  for (let step = 0; step < times * groups; step++) {
    for (let at = step % groups; at < all.length; at += groups) all[at]?.push();
    const left = began + ((step + 1) * roundMs) / groups - performance.now();
    if (left > 0) await delay(left);
  }
  const saidMs = performance.now() - began;
  await Promise.all(all.map((source) => source.recorded()));
  return { saidMs, tookMs: performance.now() - began };
}

/** Prints what it took; nothing is asserted about times. */
async function measured(all: readonly PushedSource[], processes: Processes): Promise<void> {
  const before = { ...readProcessorTimes(processes), own: ownMs(), machine: machineMs() };
  const { saidMs, tookMs } = await speak(all, rounds.measured);
  const used = since(before, { ...readProcessorTimes(processes), own: ownMs(), machine: machineMs() });
  const latencies = await Promise.all(all.map(async (source) => (await source.recorded()).slice(-rounds.measured)));
  const { p50, p99 } = percentiles(Float64Array.from(latencies.flat()).sort());
  const count = sources * rounds.measured;
  const { nats = 0, ingest = 0, own = 0, machine = 0 } = used;
  const each = (ms: number) => `${Math.round((ms * 1_000) / count)} µs`;
  const text = (value: number) => Math.round(value).toLocaleString("en");
  console.log(
    `${text(count)} frames said in ${text(saidMs)} ms and recorded in ${text(tookMs)} ms: ${text((count * 1_000) / tookMs)}/s\n` +
      `from saying to hearing that it is recorded: p50 ${text(p50)} ms, p99 ${text(p99)} ms\n` +
      `processor time for each: NATS ${each(nats)}, ingest ${each(ingest)}, what says them ${each(own - nats - ingest)}\n` +
      `other programs took ${((machine - own) / tookMs).toFixed(2)} cores`,
  );
}

/** All events of a log, in order. */
async function eventsOf(log: LogReader): Promise<readonly Event[]> {
  const from = { afterOffset: logStart, subjects: [] };
  const { lastOffset } = await log.bounds();
  const events: Event[] = [];
  for await (const { event } of log.history(from, lastOffset, new AbortController().signal)) events.push(event);
  return events;
}

/** The texts of each project's frames, in order. */
function framesOfEach(events: readonly Event[]): ReadonlyMap<string, readonly string[]> {
  const frames = new Map<string, string[]>();
  for (const { source, channel, part, original } of events) {
    if (channel !== "v1" || part !== 0) continue;
    const project = source.split("/")[2] ?? "";
    const known = frames.get(project) ?? [];
    frames.set(project, known);
    known.push(LogEntry.decode(original?.bytes ?? new Uint8Array()).entry);
  }
  return frames;
}
