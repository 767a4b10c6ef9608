import type { HeldEvent, RecordedEvent } from "../log.ts";
import { type Offset, type Sequence, sequenceOf } from "../offset.ts";

/** How many messages are asked for together, which bounds what they hold. */
const readAtOnce = 16;

/** The events of a message that are wanted; none when it is not there. */
export type ReadOneMessage = (
  sequence: Sequence,
  isWanted: (offset: Offset) => boolean,
) => Promise<readonly HeldEvent[]>;

/**
 * The events at these offsets, in the given order, without those that are not there. Neighbors in one message are taken
 * from one reading of it. No others are decoded: a message may hold a thousand.
 */
export async function* readEvents(
  offsets: readonly Offset[],
  readMessage: ReadOneMessage,
  signal: AbortSignal,
): AsyncGenerator<RecordedEvent, void> {
  const runs = runsInMessages(offsets);
  for (let done = 0; done < runs.length && !signal.aborted; done += readAtOnce) {
    const asked = runs.slice(done, done + readAtOnce);
    const wanted = new Set(asked.flatMap((run) => run.offsets));
    const read = await Promise.all(asked.map(({ sequence }) => readMessage(sequence, (offset) => wanted.has(offset))));
    const found = new Map(read.flat().map((held) => [held.offset, held]));
    for (const offset of asked.flatMap((run) => run.offsets)) {
      const recorded = found.get(offset)?.decode();
      if (recorded !== undefined) yield recorded;
    }
  }
}

type Run = { readonly sequence: Sequence; readonly offsets: Offset[] };

function runsInMessages(offsets: readonly Offset[]): readonly Run[] {
  const runs: Run[] = [];
  for (const offset of offsets) {
    const sequence = sequenceOf(offset);
    const last = runs.at(-1);
    if (last?.sequence === sequence) last.offsets.push(offset);
    else runs.push({ sequence, offsets: [offset] });
  }
  return runs;
}
