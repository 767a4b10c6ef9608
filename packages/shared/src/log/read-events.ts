import type { RecordedEvent } from "./log.ts";
import { type Offset, type Sequence, sequenceOf } from "./offset.ts";

/** How many messages are asked for together, which bounds what they hold. */
const readAtOnce = 16;

/**
 * The events at these offsets, in the given order, without those that are not there. Neighbors in one message are taken
 * from one reading of it.
 */
export async function* readEvents(
  offsets: readonly Offset[],
  eventsIn: (sequence: Sequence) => Promise<readonly RecordedEvent[]>,
  signal: AbortSignal,
): AsyncGenerator<RecordedEvent, void> {
  const runs = runsInMessages(offsets);
  for (let done = 0; done < runs.length && !signal.aborted; done += readAtOnce) {
    const asked = runs.slice(done, done + readAtOnce);
    const read = await Promise.all(asked.map(({ sequence }) => eventsIn(sequence)));
    const found = new Map(read.flat().map((recorded) => [recorded.offset, recorded]));
    for (const offset of asked.flatMap((run) => run.offsets)) {
      const recorded = found.get(offset);
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
