import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording, type RecordedMessage, type RecordedUpstream } from "@tapedeck/fakes/skaffold/recording";
import { type FakeSkaffold, startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { loopPasses } from "@tapedeck/fakes/skaffold/timed";
import { now, SightingLog, type Sightings } from "../frame/arrivals.ts";

/** Fake Skaffolds in a separate process: each emits the dev loops of a recording, one after the other. */

type Frame = { readonly channel: "v1" | "v2"; readonly at: number; readonly bytes: Buffer };

const fakes: FakeSkaffold[] = [];
let frames: readonly Frame[] = [];
/** `counts[i]`: how many frames of each channel are among the first i. */
let counts: readonly { readonly v1: number; readonly v2: number }[] = [];
/** How many frames each fake has emitted. All are ahead by the same number, except in the last round of a pace. */
let said: number[] = [];

export type Emitted = { readonly emitted: Sightings; readonly count: number; readonly wallMs: number };

/**
 * Starts so many fakes with so many frames each. The frames are made beforehand, so that emitting them costs little.
 */
export async function start(sources: number, framesOfEach: number): Promise<string[]> {
  const recording = loadRecording(join(recordings.skaffold, "01-dev-success-3-artifacts-5-iterations"));
  frames = framesOf(recording, framesOfEach);
  const sums = [{ v1: 0, v2: 0 }];
  for (const { channel } of frames) {
    const last = sums.at(-1) ?? { v1: 0, v2: 0 };
    sums.push({ ...last, [channel]: last[channel] + 1 });
  }
  counts = sums;
  const messages = { v1: ofChannel("v1"), v2: ofChannel("v2"), logs: [] };
  const endless: RecordedUpstream = { ...recording, messages, ends: {}, calls: [] };
  for (let index = 0; index < sources; index++) fakes.push(await startFakeSkaffold({ recording: endless }));
  said = fakes.map(() => 0);
  return fakes.map(({ address }) => address);
}

/** Emits as fast as the readers read. Resolves when the last frame is handed over. */
export async function playTo(index: number): Promise<{ readonly v1: number; readonly v2: number }> {
  await Promise.all(fakes.map((fake, of) => logLine(fake, of, index)));
  return counts[index] ?? { v1: 0, v2: 0 };
}

/** Emits so many frames a second from all fakes together, in turns and evenly spread. Catches up if it falls behind. */
export async function pace(perSecond: number, seconds: number): Promise<Emitted> {
  const log = new SightingLog();
  const total = Math.round(perSecond * seconds);
  const start = now();
  for (let done = 0; done < total; ) {
    const due = Math.min(total, Math.floor(((now() - start) / 1_000) * perSecond) + 1);
    for (; done < due; done++) {
      const of = done % fakes.length;
      const next = (said[of] ?? 0) + 1;
      const frame = frames[next - 1];
      if (frame === undefined) throw new Error(`there are only ${frames.length} frames`);
      log.see(`${developerOf(of)} ${frame.channel}`, counts[next]?.[frame.channel] ?? 0, now());
      await logLine(fakes[of] as FakeSkaffold, of, next);
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return { emitted: log.take(), count: total, wallMs: now() - start };
}

/**
 * `waitedMs`: the part of `wallMs` in which the process neither worked nor waited for a core, so it waited for its
 * readers.
 */
export type Loop = { readonly count: number; readonly wallMs: number; readonly waitedMs: number };

/** A dev loop: before each frame the process works, as a build does between two messages. `rounds`: see roundsIn. */
export async function loop(count: number, rounds: number): Promise<Loop> {
  const fake = fakes[0] as FakeSkaffold;
  const before = { at: now(), busyMs: onCoreOrQueuedMs() };
  for (let done = 0; done < count; done++) {
    work(rounds);
    await logLine(fake, 0, (said[0] ?? 0) + 1);
    // Sockets are written and read between two frames.
    await new Promise((resolve) => setImmediate(resolve));
  }
  const wallMs = now() - before.at;
  return { count, wallMs, waitedMs: Math.max(0, wallMs - (onCoreOrQueuedMs() - before.busyMs)) };
}

const block = Buffer.alloc(4_096);

/** A fixed amount of work, not a fixed time: it takes longer when other processes use the core. */
export function work(times: number): void {
  for (let round = 0; round < times; round++) createHash("sha256").update(block).digest();
}

/** How many rounds of work take so many ms of a core. Called once for all loops that are to be compared. */
export function roundsIn(ms: number): number {
  work(1_000);
  const { on } = mainThreadMs();
  let [rounds, tookMs] = [0, 0];
  // The kernel counts in steps of some ms: a shorter time would read as zero.
  while (tookMs < 20) {
    work(1_000);
    rounds += 1_000;
    tookMs = mainThreadMs().on - on;
  }
  return Math.max(1, Math.round((rounds * ms) / tookMs));
}

function onCoreOrQueuedMs(): number {
  const { on, queued } = mainThreadMs();
  return on + queued;
}

/** The kernel counts the time on a core, and the time ready to run without one. */
function mainThreadMs(): { readonly on: number; readonly queued: number } {
  const [on = 0, queued = 0] = readFileSync("/proc/thread-self/schedstat", "utf8").split(" ").map(Number);
  return { on: on / 1_000_000, queued: queued / 1_000_000 };
}

/** Frames of the first fake so far. */
export const saidSoFar = (): number => said[0] ?? 0;

export function listeners(): number {
  return fakes.reduce((sum, { health }) => sum + health.v1.listeners + health.v2.listeners, 0);
}

export const developerOf = (index: number): string => `dev-${index}`;

async function logLine(fake: FakeSkaffold, of: number, index: number): Promise<void> {
  said[of] = index;
  const { v1, v2 } = counts[index] ?? { v1: 0, v2: 0 };
  // A count of 0 would be reached before anything is emitted.
  await fake.playUntil({ v1, v2, logs: 0 });
}

function framesOf(recording: RecordedUpstream, count: number): Frame[] {
  const made: Frame[] = [];
  for (const pass of loopPasses(recording, { pauseMs: 100 })) {
    const both = (["v1", "v2"] as const).flatMap((channel) => pass[channel].map((each) => ({ channel, ...each })));
    both.sort((a, b) => a.at - b.at);
    for (const { channel, stamped } of both) made.push({ channel, at: made.length, bytes: stamped() });
    if (made.length >= count) break;
  }
  return made.slice(0, count);
}

function ofChannel(channel: Frame["channel"]): RecordedMessage[] {
  return frames.filter((frame) => frame.channel === channel);
}
