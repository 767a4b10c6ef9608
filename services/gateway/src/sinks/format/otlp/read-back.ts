import { toSubjects } from "@tapedeck/shared/filter/subjects";
import type { ReadFrom, RecordedEvent } from "@tapedeck/shared/log/log";
import { logStart, messagesBefore, type Offset } from "@tapedeck/shared/log/offset";
import { OutOfRangeError } from "@tapedeck/shared/log/out-of-range";
import { offsetAfterLoss } from "../../delivery/start-offset.ts";
import type { FormatReader } from "../format.ts";

/** The first read goes so many messages back, and each further one so many times as far. */
const firstMessages = 128;
const widening = 8;

/** Events that are kept of one read, at most: what a run has beyond them is left out. */
export const maxEventsRead = 20_000;
/** Events between two checks which of them are still needed, which reads all. */
const betweenChecks = 1_000;

export type ReadBackRequest = {
  readonly workspace: string;
  readonly source: string;
  readonly kinds: readonly string[];
  /** The last event to read. */
  readonly until: Offset;
  /** Only what follows is read, whether the beginning is there or not. */
  readonly from?: Offset | undefined;
  /** Whether the reading need not go further back than this event. */
  readonly isBeginning: (event: RecordedEvent["event"]) => boolean;
  /** What is kept of the time before the beginning, and read for it. Absent: nothing. */
  readonly ahead?: Ahead;
  /** Whether the event is kept. */
  readonly isKept: (event: RecordedEvent["event"]) => boolean;
  /** Those that are still needed, where there are too many to be kept. Absent: the first ones. */
  readonly needed?: (events: readonly RecordedEvent[]) => readonly RecordedEvent[];
};

export type Ahead = {
  /** How long before the beginning it may be recorded. */
  readonly ms: number;
  readonly isOwn: (one: RecordedEvent, beginning: RecordedEvent) => boolean;
};

/** `isWhole`: the beginning was found. `left`: how many events were too many. */
export type ReadBack = { readonly events: readonly RecordedEvent[]; readonly isWhole: boolean; readonly left: number };

/**
 * Reads events of one source backwards from one of them until their beginning, by ranges that grow: what is read is a few times what
 * there is between the two, whatever else the log holds. Without the upstream's own bytes.
 */
export async function readBack(
  reader: Pick<FormatReader, "historyBatches">,
  request: ReadBackRequest,
  signal: AbortSignal,
): Promise<ReadBack> {
  const { from, until } = request;
  if (from !== undefined) return readFrom(reader, from, request, signal);
  for (let messages = firstMessages; ; messages *= widening) {
    const after = messagesBefore(until, messages);
    const found = await readFrom(reader, after, request, signal);
    if (found.isWhole || after === logStart || signal.aborted) return found;
  }
}

async function readFrom(
  reader: Pick<FormatReader, "historyBatches">,
  from: Offset,
  { workspace, source, kinds, until, isBeginning, ahead, isKept, needed = (all) => all }: ReadBackRequest,
  signal: AbortSignal,
): Promise<ReadBack> {
  const subjects = toSubjects({ sources: [source], kinds }, workspace);
  let isWhole = false;
  let left = 0;
  let kept = 0;
  let checkAt = 0;
  let events: RecordedEvent[] = [];
  let firstAt: number | undefined;
  for await (const recorded of keptEvents(reader, { afterOffset: from, subjects }, until, signal)) {
    firstAt ??= recorded.recordedAt.getTime();
    if (isBeginning(recorded.event)) {
      isWhole ||= isAllRead(recorded, firstAt, ahead);
      events = events.filter((one) => ahead?.isOwn(one, recorded));
      left = 0;
    }
    if (!isKept(recorded.event)) continue;
    kept++;
    if (events.length >= maxEventsRead && kept >= checkAt) {
      events = [...needed(events)];
      checkAt = kept + betweenChecks;
    }
    if (events.length < maxEventsRead) events.push(withoutOriginal(recorded));
    else left++;
  }
  return { events, isWhole, left };
}

/** Whether a range with this first event has all that belongs to a run with this beginning. */
function isAllRead(beginning: RecordedEvent, firstAt: number, ahead: Ahead | undefined): boolean {
  if (ahead === undefined || beginning.event.kind === "session.started") return true;
  return firstAt < beginning.recordedAt.getTime() - ahead.ms;
}

/** The events of a range, without those that the log has lost. */
export async function* keptEvents(
  reader: Pick<FormatReader, "historyBatches">,
  { afterOffset, subjects }: ReadFrom,
  until: Offset,
  signal: AbortSignal,
): AsyncGenerator<RecordedEvent, void> {
  for (let after = afterOffset; ; ) {
    try {
      for await (const batch of reader.historyBatches({ afterOffset: after, subjects }, until, signal)) {
        for (const held of batch) {
          after = held.offset;
          const recorded = held.decode();
          if (recorded !== undefined) yield recorded;
        }
      }
      return;
    } catch (error) {
      if (!(error instanceof OutOfRangeError)) throw error;
      const next = offsetAfterLoss(error);
      if (next <= after) throw error;
      after = next;
    }
  }
}

/** The upstream's own bytes are most of an event. */
export function withoutOriginal(recorded: RecordedEvent): RecordedEvent {
  return { ...recorded, event: { ...recorded.event, original: undefined } };
}
