import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { endsLoopOnV2 } from "@tapedeck/shared/events/loop-end";
import { toSubjects } from "@tapedeck/shared/filter/subjects";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { laterOf } from "@tapedeck/shared/log/offset";
import { delay } from "@tapedeck/shared/sync/delay";
import type { FormatReader } from "../format.ts";
import { stepOf } from "./operations.ts";
import { keptEvents, maxEventsRead, withoutOriginal } from "./read-back.ts";
import { belongsTo, endsSession, kindsOf } from "./run-scopes.ts";
import type { RunKey } from "./trace-ids.ts";

/** Between two reads. */
const pollMs = 50;

const kinds = [...kindsOf.loop.map((noun) => `${noun}.*`), "mirror.received", "session.ended", "session.lost"];

export type LateRequest = {
  readonly workspace: string;
  readonly run: RunKey;
  /** The event of v1 after which v1 reports nothing more of the loop. */
  readonly end: RecordedEvent;
  /** What is recorded more than this after the end is not waited for. */
  readonly lateMs: number;
};

/** Whether another channel may report something of a run after this event: v1 and v2 are recorded beside each other. */
export function mayHaveLateEvents(run: RunKey, { channel }: Event): boolean {
  return run.kind === "loop" && channel === "v1";
}

/**
 * The steps of a loop that v2 reports, as far as they were recorded after v1's end of the loop. Waits until v2 has passed the loop, too:
 * until it reports the end, or something of a later loop, or the session is over. When that is recorded, and not when it is read, decides
 * what is late, so that each reading gives the same.
 */
export async function readLateEvents(
  reader: Pick<FormatReader, "historyBatches" | "now">,
  { workspace, run, end, lateMs }: LateRequest,
  signal: AbortSignal,
): Promise<readonly RecordedEvent[]> {
  const subjects = toSubjects({ sources: [end.event.source], kinds }, workspace);
  const dueAt = end.recordedAt.getTime() + lateMs;
  const waitsUntil = performance.now() + lateMs;
  const late: RecordedEvent[] = [];
  for (let after = end.offset; ; ) {
    const { at, lastOffset } = await reader.now();
    for await (const recorded of keptEvents(reader, { afterOffset: after, subjects }, lastOffset, signal)) {
      const { event, recordedAt } = recorded;
      if (recordedAt.getTime() > dueAt || hasPassed(run, end.event, event)) return late;
      if (isLate(run, end.event, event) && late.length < maxEventsRead) late.push(withoutOriginal(recorded));
    }
    // The second one for a log whose clock is far behind.
    if (at.getTime() > dueAt || performance.now() > waitsUntil || signal.aborted) return late;
    after = laterOf(after, lastOffset);
    await delay(pollMs, signal);
  }
}

/** Whether an event after the end belongs to the loop nevertheless. */
export function isLate(run: RunKey, end: Event, event: Event): boolean {
  return event.channel !== end.channel && stepOf(event) !== undefined && belongsTo(run, event);
}

/** Whether no event of another channel belongs to the loop from this one on. */
function hasPassed(run: RunKey, end: Event, event: Event): boolean {
  if (event.session !== run.session || event.injected) return false;
  if (endsSession(event)) return true;
  if (event.channel === end.channel || event.operation === undefined) return false;
  const { runner, loop } = event.operation;
  if (runner !== run.runner) return runner > run.runner;
  return loop > run.loop || (loop === run.loop && endsLoopOnV2(event));
}
