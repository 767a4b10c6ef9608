import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import { Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import type { SkaffoldChannel } from "@tapedeck/shared/skaffold/methods";
import { nanosOfTimestamp, timestampOfNanos } from "@tapedeck/shared/time/timestamp";
import { withCacheHit } from "./cache-hit.ts";
import type { RecordedMessage, RecordedUpstream } from "./recording.ts";

export type Pass = Readonly<Record<SkaffoldChannel, readonly PassMessage[]>>;
/** `at` continues over all passes, on the recording's clock; `stamped` gives the message as if it were sent now. */
export type PassMessage = { readonly at: number; readonly bytes: Buffer; readonly stamped: () => Buffer };

export type LoopOptions = {
  /** Between two rounds, on the recording's clock. */
  readonly pauseMs: number;
  /** Every other round finds an artifact in the cache. */
  readonly cacheHits?: boolean;
};

/**
 * A recording as one endless process: once as recorded, then its later dev loops repeatedly with rising iterations, in
 * a varying pace. Times in the messages are those of the playing, so durations look real.
 */
export function* loopPasses(
  recording: RecordedUpstream,
  { pauseMs, cacheHits = false }: LoopOptions,
): Generator<Pass, never> {
  const { from, to, loops } = repeatedPart(recording);
  const withHit = cacheHits ? withCacheHit(recording, from) : recording;
  const stamp = stamper();
  let start = from;
  yield pass(recording, stamp, (at) => (at <= to ? at : undefined), 0);
  for (let count = 1; ; count++) {
    start += (to - from) * paceOf(count - 1) + pauseMs;
    const begin = start;
    const move = (at: number) => (at >= from && at <= to ? begin + (at - from) * paceOf(count) : undefined);
    yield pass(count % 2 === 1 ? withHit : recording, stamp, move, count * loops);
  }
}

/** How long a pass takes against the recording; the first one is as recorded. */
function paceOf(count: number): number {
  return count === 0 ? 1 : 1 + 0.3 * Math.sin(count * 13);
}

type Stamp = (channel: SkaffoldChannel, message: RecordedMessage, addIterations: number) => Buffer;

function pass(recording: RecordedUpstream, stamp: Stamp, move: (at: number) => number | undefined, add: number): Pass {
  const part = (channel: SkaffoldChannel) =>
    recording.messages[channel].flatMap((message): PassMessage[] => {
      const at = move(message.at);
      return at === undefined ? [] : [{ at, bytes: message.bytes, stamped: () => stamp(channel, message, add) }];
    });
  return { v1: part("v1"), v2: part("v2"), logs: part("logs") };
}

/** All loops but the first, or the only one; without what was sent when the process was asked to stop. */
export function repeatedPart(recording: RecordedUpstream): { from: number; to: number; loops: number } {
  const starts = recording.messages.v1.flatMap(({ at, bytes }) =>
    loopOf(bytes)?.status === "In Progress" ? [at] : [],
  );
  const from = starts[1] ?? starts[0] ?? 0;
  // v2 reports the same start a moment before or after v1.
  const earlier = recording.messages.v2.find(({ at, bytes }) => Math.abs(at - from) < 50 && startsLoop(bytes))?.at;
  const lastEnd = recording.messages.v1.findLast(({ bytes }) => /Succeeded|Failed/.test(loopOf(bytes)?.status ?? ""));
  const stop = recording.timeline.find(({ what }) => what.startsWith("SIG"))?.at ?? Number.POSITIVE_INFINITY;
  const to = Math.min(stop, (lastEnd?.at ?? from) + 1_000);
  return { from: Math.min(from, earlier ?? from), to, loops: Math.max(1, starts.length - 1) };
}

function loopOf(bytes: Buffer) {
  const event = LogEntry.decode(bytes).event?.event_type;
  return event?.$case === "devLoopEvent" ? event.value : undefined;
}

function startsLoop(bytes: Buffer): boolean {
  const event = Event.decode(bytes).event_type;
  return event?.$case === "taskEvent" && event.value.task === "DevLoop" && event.value.status === "InProgress";
}

/** Keeps the recorded time between saying and hearing, and the order of a channel's times. */
function stamper(): Stamp {
  const last: Record<SkaffoldChannel, bigint> = { v1: 0n, v2: 0n, logs: 0n };
  const timeFor = (channel: SkaffoldChannel, heardAt: number, said: Timestamp | undefined): Timestamp => {
    const nowNs = BigInt(Math.round((performance.timeOrigin + performance.now()) * 1_000)) * 1_000n;
    const underWay = said === undefined ? 0n : BigInt(Math.round(heardAt)) * 1_000_000n - nanosOfTimestamp(said);
    const time = nowNs - (underWay > 0n ? underWay : 0n);
    last[channel] = time > last[channel] ? time : last[channel] + 1_000n;
    return timestampOfNanos(last[channel]);
  };
  return (channel, { at, bytes }, add) => renumbered(channel, bytes, add, (said) => timeFor(channel, at, said));
}

type TimeOf = (said: Timestamp | undefined) => Timestamp | undefined;

/** The same message of a later loop; `timeOf` gives it another time. */
export function renumbered(
  channel: SkaffoldChannel,
  bytes: Buffer,
  add: number,
  timeOf: TimeOf = (said) => said,
): Buffer {
  if (channel === "v1") {
    const entry = LogEntry.decode(bytes);
    const event = entry.event?.event_type;
    if (event?.$case === "devLoopEvent") event.value.iteration += add;
    return Buffer.from(LogEntry.encode({ ...entry, timestamp: timeOf(entry.timestamp) }).finish());
  }
  const event = Event.decode(bytes);
  if (event.event_type !== undefined) renumber(event.event_type, add);
  return Buffer.from(Event.encode({ ...event, timestamp: timeOf(event.timestamp) }).finish());
}

/** v2 has the iteration in every task's id: "Build-3". Iteration 0 is what comes before the first loop. */
function renumber(event: NonNullable<Event["event_type"]>, add: number): void {
  const renumbered = (id: string) => id.replace(/-([1-9]\d*)$/, (_, number: string) => `-${Number(number) + add}`);
  if (event.$case === "taskEvent") {
    event.value.id = renumbered(event.value.id);
    if (event.value.iteration > 0) event.value.iteration += add;
  } else if ("task_id" in event.value) {
    event.value.task_id = renumbered(event.value.task_id);
  }
}
