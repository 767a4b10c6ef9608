import type { RecordedEvent } from "@tapedeck/shared/log/log";

type Event = RecordedEvent["event"];

/**
 * Leaves out the events that only report how far their source or session has come, where a later event of the batch
 * reports that anyway. The first of each stays too, because it may begin a row.
 */
export function withoutRepeats(
  batch: readonly RecordedEvent[],
  of: "source" | "session",
  isInformative: (event: Event) => boolean,
): readonly RecordedEvent[] {
  const later = new Set<string>();
  const kept: RecordedEvent[] = [];
  const first = new Map<string, RecordedEvent>();
  for (const recorded of batch) if (!first.has(recorded.event[of])) first.set(recorded.event[of], recorded);
  for (const recorded of batch.toReversed()) {
    const name = recorded.event[of];
    if (later.has(name) && first.get(name) !== recorded && !isInformative(recorded.event)) continue;
    later.add(name);
    kept.push(recorded);
  }
  return kept.reverse();
}
