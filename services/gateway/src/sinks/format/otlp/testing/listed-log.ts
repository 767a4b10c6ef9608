import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { HeldEvent, RecordedEvent } from "@tapedeck/shared/log/log";
import { logStart, type Offset, offsetOf } from "@tapedeck/shared/log/offset";
import { OutOfRangeError } from "@tapedeck/shared/log/out-of-range";
import { formatPosition } from "@tapedeck/shared/log/position";
import type { FormatReader } from "../../format.ts";

export const epoch = "gcj869";

/** Events as a log has them, each in a message of its own. `firstKept`: a limit of the stream has dropped what is before. */
export function listedLog(events: readonly Event[], { firstKept = 1 } = {}) {
  const recorded: readonly RecordedEvent[] = events.map((event, index) => ({
    offset: offsetOf(index + 1),
    recordedAt: new Date(index),
    subject: "",
    event,
  }));
  const reads: { readonly after: Offset; readonly count: number }[] = [];
  /** Whether a session is erased. */
  let isErased = (_: string): boolean => false;
  const reader: FormatReader = {
    history: () => refuse(),
    /** For the subjects of sessions, the only ones that formats ask for. */
    lastMatch: async () => recorded.findLast(({ event }) => event.kind.startsWith("session."))?.offset ?? logStart,
    now: async () => ({ at: new Date(recorded.length), lastOffset: recorded.at(-1)?.offset ?? logStart }),
    async *historyBatches({ afterOffset }, until) {
      const first = offsetOf(firstKept);
      if (afterOffset !== logStart && afterOffset < first - 1) throw dropped(afterOffset, (first - 1) as Offset);
      const read = recorded.filter(({ offset }) => offset > afterOffset && offset >= first && offset <= until);
      reads.push({ after: afterOffset, count: read.length });
      for (const one of read) yield [held(one, isErased)];
    },
    async *read(offsets) {
      yield* recorded.filter(({ offset, event }) => offsets.includes(offset) && !isErased(event.session));
    },
  };
  return {
    reader,
    recorded,
    reads,
    erase: (session: string) => {
      isErased = (one) => one === session;
    },
  };
}

function held(recorded: RecordedEvent, isErased: (session: string) => boolean): HeldEvent {
  const isGone = isErased(recorded.event.session);
  const bytes = isGone ? undefined : Buffer.alloc(1);
  return {
    offset: recorded.offset,
    subject: "",
    bytes,
    isShared: false,
    decode: () => (isGone ? undefined : recorded),
  };
}

function dropped(after: Offset, earliest: Offset): OutOfRangeError {
  const details = { loss: "dropped", earliest: formatPosition({ epoch, offset: earliest }) } as const;
  return new OutOfRangeError(`nothing after ${after}`, details);
}

function refuse(): never {
  throw new Error("not a part of this log");
}
