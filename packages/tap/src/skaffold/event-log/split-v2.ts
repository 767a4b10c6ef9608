import { Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import { yieldToEventLoop } from "@tapedeck/shared/sync/yield-to-event-loop";
import { msBetween, type Timestamp } from "@tapedeck/shared/time/timestamp";
import { rememberV2, startOfV2, startsLoop } from "../runners.ts";
import type { ImportedFrame } from "./event-log-file.ts";
import { goesBack } from "./goes-back.ts";

export type V2Process = { readonly frames: readonly ImportedFrame[]; readonly runnersMadeAt: readonly Timestamp[] };

type V2Message = {
  readonly frame: ImportedFrame;
  /** The number of the dev loop, counted through the whole process; 0 before the first. Undefined if the event has none. */
  readonly iteration: number | undefined;
  readonly startsLoop: boolean;
  readonly makesRunner: boolean;
  /** The first line that is printed with `-v info`. */
  readonly isFirstLine: boolean;
  readonly isText: boolean;
};

/**
 * A process begins
 * - where it prints its first line;
 * - where time goes back: it began before the process that wrote first, and ended after it;
 * - where the loop count returns to 0, or starts again;
 * - with a runner while no loops were counted: a one-shot command makes only one. The lines before the runner, from the
 *   longest gap on, belong to the same process.
 * Any other new runner is an edited configuration. A process that made no runner (its configuration could not be read) and
 * printed no first line counts as the end of the one-shot command before it.
 */
export async function splitV2(frames: readonly ImportedFrame[], signal?: AbortSignal): Promise<readonly V2Process[]> {
  const messages = await readMessages(frames, signal);
  const starts = [0];
  let iteration = 0;
  let hasRunner = false;
  const begin = (at: number) => {
    if (at > (starts.at(-1) ?? 0)) starts.push(at);
    iteration = 0;
    hasRunner = false;
  };
  messages.forEach((event, at) => {
    if (event.isFirstLine || goesBack(messages[at - 1]?.frame.timestamp, event.frame.timestamp)) begin(at);
    else if (event.makesRunner && hasRunner) {
      if (!continuesCount(messages, at, iteration)) begin(startOfPrelude(messages, at, starts.at(-1) ?? 0));
    } else if (event.iteration === 0 && iteration > 0) begin(at);
    hasRunner ||= event.makesRunner;
    iteration = event.iteration ?? iteration;
  });
  return starts.flatMap((start, index) => {
    const own = messages.slice(start, starts[index + 1]);
    const runnersMadeAt = own.filter(({ makesRunner }) => makesRunner).map(({ frame }) => frame.timestamp);
    return own.length > 0 ? [{ frames: own.map(({ frame }) => frame), runnersMadeAt }] : [];
  });
}

async function readMessages(frames: readonly ImportedFrame[], signal: AbortSignal | undefined): Promise<V2Message[]> {
  const yieldIfDue = yieldToEventLoop();
  const messages: V2Message[] = [];
  let memory = startOfV2;
  for (const frame of frames) {
    await yieldIfDue();
    signal?.throwIfAborted();
    const event = Event.decode(frame.bytes).event_type;
    const { runner } = memory;
    memory = rememberV2(memory, event);
    const makesRunner = memory.runner > runner;
    const text = event?.$case === "skaffoldLogEvent" ? event.value.message : undefined;
    messages.push({
      frame,
      iteration: iterationOf(event),
      startsLoop: event?.$case === "taskEvent" && startsLoop(event.value),
      makesRunner,
      isFirstLine: text !== undefined && /^starting gRPC server on port \d/.test(text),
      isText: text !== undefined,
    });
  }
  return messages;
}

/** The task id "Build-3" belongs to loop 3. */
function iterationOf(event: Event["event_type"]): number | undefined {
  if (event?.$case === "taskEvent") return event.value.iteration;
  const taskId = event !== undefined && "task_id" in event.value ? event.value.task_id : "";
  const digits = /-(\d{1,9})$/.exec(taskId)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** After an edit the process' next loop has the next number, and its events until then belong to the loop before. */
function continuesCount(messages: readonly V2Message[], runnerAt: number, before: number): boolean {
  if (before === 0) return false;
  const next = messages.find(({ iteration }, at) => at > runnerAt && iteration !== undefined);
  return next?.iteration === (next?.startsLoop ? before + 1 : before);
}

/** Where the text before a runner begins that was printed by the runner's process. */
function startOfPrelude(messages: readonly V2Message[], runnerAt: number, from: number): number {
  let first = runnerAt;
  while (first > from && messages[first - 1]?.isText && messages[first - 1]?.iteration === 0) first -= 1;
  let [start, longest] = [runnerAt, -1];
  for (let at = Math.max(first, from + 1); at <= runnerAt; at += 1) {
    const gap = millisecondsBetween(messages[at - 1]?.frame.timestamp, messages[at]?.frame.timestamp);
    if (gap > longest) [start, longest] = [at, gap];
  }
  return start;
}

function millisecondsBetween(before: Timestamp | undefined, after: Timestamp | undefined): number {
  if (before === undefined || after === undefined) return 0;
  return msBetween(before, after);
}
