import { Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import { breather } from "@tapedeck/shared/sync/yield-to-event-loop";
import { type Moment, msBetween } from "@tapedeck/shared/time/moment";
import { rememberV2, startOfV2, startsLoop } from "../runners.ts";
import type { ImportedFrame } from "./event-log-file.ts";
import { goesBack } from "./goes-back.ts";

export type V2Process = { readonly frames: readonly ImportedFrame[]; readonly runnersMadeAt: readonly Moment[] };

type Told = {
  readonly frame: ImportedFrame;
  /** Of the dev loop, counted through the whole process; 0 before the first. Undefined: the event does not say. */
  readonly iteration: number | undefined;
  readonly startsLoop: boolean;
  readonly makesRunner: boolean;
  /** What is printed first, with `-v info`. */
  readonly isFirstWord: boolean;
  readonly isText: boolean;
};

/**
 * A process begins
 * - where it prints its first words;
 * - where time goes back: it began before the one that has written first, and has ended after it;
 * - where loops that were counted are not counted any more (0), or again from the beginning;
 * - with a runner, when nobody has counted loops yet: a one-shot command makes one only. What is printed before its
 *   runner belongs to it: from the longest pause on.
 * Else a new runner is an edited configuration. A process that made no runner (its configuration could not be read) and
 * printed no first words is taken for the end of the one-shot command before it.
 */
export async function splitV2(frames: readonly ImportedFrame[], signal?: AbortSignal): Promise<readonly V2Process[]> {
  const told = await tell(frames, signal);
  const starts = [0];
  let iteration = 0;
  let hasRunner = false;
  const begin = (at: number) => {
    if (at > (starts.at(-1) ?? 0)) starts.push(at);
    iteration = 0;
    hasRunner = false;
  };
  told.forEach((event, at) => {
    if (event.isFirstWord || goesBack(told[at - 1]?.frame.moment, event.frame.moment)) begin(at);
    else if (event.makesRunner && hasRunner) {
      if (!goesOnCounting(told, at, iteration)) begin(startOfPrelude(told, at, starts.at(-1) ?? 0));
    } else if (event.iteration === 0 && iteration > 0) begin(at);
    hasRunner ||= event.makesRunner;
    iteration = event.iteration ?? iteration;
  });
  return starts.flatMap((start, index) => {
    const own = told.slice(start, starts[index + 1]);
    const runnersMadeAt = own.filter(({ makesRunner }) => makesRunner).map(({ frame }) => frame.moment);
    return own.length > 0 ? [{ frames: own.map(({ frame }) => frame), runnersMadeAt }] : [];
  });
}

async function tell(frames: readonly ImportedFrame[], signal: AbortSignal | undefined): Promise<Told[]> {
  const breathe = breather();
  const told: Told[] = [];
  let memory = startOfV2;
  for (const frame of frames) {
    await breathe();
    signal?.throwIfAborted();
    const event = Event.decode(frame.bytes).event_type;
    const { runner } = memory;
    memory = rememberV2(memory, event);
    const makesRunner = memory.runner > runner;
    const text = event?.$case === "skaffoldLogEvent" ? event.value.message : undefined;
    told.push({
      frame,
      iteration: iterationOf(event),
      startsLoop: event?.$case === "taskEvent" && startsLoop(event.value),
      makesRunner,
      isFirstWord: text !== undefined && /^starting gRPC server on port \d/.test(text),
      isText: text !== undefined,
    });
  }
  return told;
}

/** "Build-3" is of loop 3. */
function iterationOf(event: Event["event_type"]): number | undefined {
  if (event?.$case === "taskEvent") return event.value.iteration;
  const taskId = event !== undefined && "task_id" in event.value ? event.value.task_id : "";
  const digits = /-(\d{1,9})$/.exec(taskId)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** After an edit the process' next loop is one further, and what it says until then is still of the loop before. */
function goesOnCounting(told: readonly Told[], runnerAt: number, before: number): boolean {
  if (before === 0) return false;
  const next = told.find(({ iteration }, at) => at > runnerAt && iteration !== undefined);
  return next?.iteration === (next?.startsLoop ? before + 1 : before);
}

/** Where the text before a runner begins that this runner's process has printed. */
function startOfPrelude(told: readonly Told[], runnerAt: number, from: number): number {
  let first = runnerAt;
  while (first > from && told[first - 1]?.isText && told[first - 1]?.iteration === 0) first -= 1;
  let [start, longest] = [runnerAt, -1];
  for (let at = Math.max(first, from + 1); at <= runnerAt; at += 1) {
    const pause = millisecondsBetween(told[at - 1]?.frame.moment, told[at]?.frame.moment);
    if (pause > longest) [start, longest] = [at, pause];
  }
  return start;
}

function millisecondsBetween(before: Moment | undefined, after: Moment | undefined): number {
  if (before === undefined || after === undefined) return 0;
  return msBetween(before, after);
}
