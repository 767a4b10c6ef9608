import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import type { SkaffoldChannel } from "@tapedeck/shared/skaffold/methods";
import { yieldToEventLoop } from "@tapedeck/shared/sync/yield-to-event-loop";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { compareTimestamps, msBetween } from "@tapedeck/shared/time/timestamp";
import { runnerMadeOnV1 } from "../runners.ts";
import type { ImportedFrame } from "./event-log-file.ts";
import { splitV2 } from "./split-v2.ts";

/** The messages of one Skaffold process. */
export type ImportedProcess = {
  /** Each channel in its own order, channels among each other by time. */
  readonly frames: readonly ImportedFrame[];
  /**
   * Only v1 is known, which looks the same for a new process and for an edited configuration: this may be the next runner
   * of the process before. In that case that process' session, if it is recorded, has this process' first frame.
   */
  readonly maybeContinues: boolean;
};

/** Times of the same moment on v1 and v2 differ by less than a millisecond. */
const sameTimeMs = 1_000;

/**
 * Separates the processes that appended to the same files. v2 counts its loops through the whole process, so it can
 * distinguish a new process from an edited configuration. v1 follows it by the times at which runners were created.
 * Yields to the event loop.
 * @throws AbortError when the signal aborts
 */
export async function splitProcesses(
  frames: readonly ImportedFrame[],
  signal?: AbortSignal,
): Promise<readonly ImportedProcess[]> {
  const framesOf = (channel: SkaffoldChannel) => frames.filter((frame) => frame.channel === channel);
  const processes: ProcessDraft[] = (await splitV2(framesOf("v2"), signal)).map(({ frames: v2, runnersMadeAt }) => ({
    v1: [],
    v2,
    logs: [],
    runnersMadeAt,
  }));
  const fromV2 = [...processes];
  for (const segment of await runnersOfV1(framesOf("v1"), signal)) {
    const process = segment.isRunner
      ? fromV2.find(({ runnersMadeAt }) => runnersMadeAt.some((at) => isSameTime(at, segment.startedAt)))
      : fromV2.findLast((known) => compareTimestamps(startOf(known), segment.startedAt) <= 0);
    if (process) process.v1.push(...segment.frames);
    else processes.push({ v1: segment.frames, v2: [], logs: [], runnersMadeAt: [] });
  }
  processes.sort((a, b) => compareTimestamps(startOf(a), startOf(b)));
  for (const frame of framesOf("logs")) {
    const process =
      processes.findLast((known) => compareTimestamps(startOf(known), frame.timestamp) <= 0) ?? processes[0];
    if (process) process.logs.push(frame);
    else processes.push({ v1: [], v2: [], logs: [frame], runnersMadeAt: [] });
  }
  return processes.map((process, index) => ({
    frames: [process.v1, process.v2, process.logs].reduce(interleave),
    maybeContinues: index > 0 && process.v2.length === 0,
  }));
}

type ProcessDraft = {
  readonly v1: ImportedFrame[];
  readonly v2: readonly ImportedFrame[];
  readonly logs: ImportedFrame[];
  readonly runnersMadeAt: readonly Timestamp[];
};

/** Not a runner: a log whose beginning is missing. */
type RunnerOfV1 = { readonly isRunner: boolean; readonly startedAt: Timestamp; readonly frames: ImportedFrame[] };

async function runnersOfV1(
  frames: readonly ImportedFrame[],
  signal: AbortSignal | undefined,
): Promise<readonly RunnerOfV1[]> {
  const yieldIfDue = yieldToEventLoop();
  const runners: RunnerOfV1[] = [];
  const early: ImportedFrame[] = [];
  for (const frame of frames) {
    await yieldIfDue();
    signal?.throwIfAborted();
    if (makesRunner(frame.bytes)) {
      runners.push({ isRunner: true, startedAt: frame.timestamp, frames: [...early.splice(0), frame] });
    } else (runners.at(-1)?.frames ?? early).push(frame);
  }
  const [first] = early;
  return first ? [{ isRunner: false, startedAt: first.timestamp, frames: early }] : runners;
}

function makesRunner(bytes: Uint8Array): boolean {
  try {
    const event = LogEntry.decode(bytes).event?.event_type;
    return event?.$case === "metaEvent" && runnerMadeOnV1(event.value) !== undefined;
  } catch {
    return false;
  }
}

function startOf({ v1: [first], v2, logs }: ProcessDraft): Timestamp {
  const starts = [first, v2[0], logs[0]].flatMap((frame) => (frame ? [frame.timestamp] : []));
  return starts.sort(compareTimestamps)[0] ?? { seconds: 0n, nanos: 0 };
}

/** Merges two channels by time, each in its own order. */
function interleave(left: readonly ImportedFrame[], right: readonly ImportedFrame[]): ImportedFrame[] {
  const out: ImportedFrame[] = [];
  let [l, r] = [0, 0];
  for (;;) {
    const [a, b] = [left[l], right[r]];
    if (a === undefined && b === undefined) return out;
    if (b === undefined || (a !== undefined && compareTimestamps(a.timestamp, b.timestamp) <= 0)) {
      if (a) out.push(a);
      l += 1;
    } else {
      out.push(b);
      r += 1;
    }
  }
}

function isSameTime(a: Timestamp, b: Timestamp): boolean {
  return Math.abs(msBetween(a, b)) < sameTimeMs;
}
