import type { HeldBatches, HeldEvent, RecordedEvent } from "../log.ts";
import { type Offset, type Sequence, sequenceOf } from "../offset.ts";
import { hold } from "./hold.ts";

/** How many messages are asked for together, which bounds what they hold. */
const readAtOnce = 16;

/** The events of a message that are wanted; none when it is not there. */
export type ReadOneMessage = (
  sequence: Sequence,
  isIncluded: (offset: Offset) => boolean,
) => Promise<readonly HeldEvent[]>;

/** Neighbors in one message, which are taken from one reading of it. */
export type MessageRun = { readonly sequence: Sequence; readonly offsets: readonly Offset[] };

/** The events of some runs: of each in its own order, without those that are not there. */
export type ReadRuns = (runs: readonly MessageRun[]) => Promise<(readonly HeldEvent[])[]>;

/** Reads the runs beside each other. No events but the wanted ones are decoded: a message may hold a thousand. */
export function besideEachOther(readMessage: ReadOneMessage): ReadRuns {
  const readRun = async ({ sequence, offsets }: MessageRun) => {
    const selected = new Set(offsets);
    const found = new Map(
      (await readMessage(sequence, (offset) => selected.has(offset))).map((one) => [one.offset, one]),
    );
    return offsets.flatMap((offset) => found.get(offset) ?? []);
  };
  return (runs) => Promise.all(runs.map(readRun));
}

/** The events at these offsets, in the given order, without those that are not there; those of a run together. */
export async function* readEventBatches(
  offsets: readonly Offset[],
  readRuns: ReadRuns,
  signal: AbortSignal,
): HeldBatches {
  const runs = runsInMessages(offsets);
  for (let done = 0; done < runs.length && !signal.aborted; ) {
    using held = hold(await readRuns(runs.slice(done, done + readAtOnce)));
    for (let events = held.next(); events !== undefined; events = held.next()) {
      done++;
      if (events.length > 0) yield events;
    }
  }
}

/** The same, one by one. */
export async function* readEvents(
  offsets: readonly Offset[],
  readMessage: ReadOneMessage,
  signal: AbortSignal,
): AsyncGenerator<RecordedEvent, void> {
  for await (const events of readEventBatches(offsets, besideEachOther(readMessage), signal)) {
    for (const held of events) {
      const recorded = held.decode();
      if (recorded !== undefined) yield recorded;
    }
  }
}

function runsInMessages(offsets: readonly Offset[]): readonly MessageRun[] {
  const runs: { readonly sequence: Sequence; readonly offsets: Offset[] }[] = [];
  for (const offset of offsets) {
    const sequence = sequenceOf(offset);
    const last = runs.at(-1);
    if (last?.sequence === sequence) last.offsets.push(offset);
    else runs.push({ sequence, offsets: [offset] });
  }
  return runs;
}
