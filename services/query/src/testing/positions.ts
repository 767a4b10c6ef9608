import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { indexesPerMessage, offsetOf } from "@tapedeck/shared/log/offset";
import type { Database } from "../db/database.ts";
import { eventBlocks } from "../views/events/blocks.ts";
import { eventGroups } from "../views/events/groups.ts";
import { eventPositions } from "../views/events/positions.ts";
import { emptyContext } from "../views/view.ts";

/** The events as a log has them whose messages hold several. `size`: how many the next message holds. */
export function inMessages(events: readonly Event[], size: () => number): readonly RecordedEvent[] {
  const recorded: RecordedEvent[] = [];
  for (let sequence = 1; recorded.length < events.length; sequence += 1) {
    const held = events.slice(recorded.length, recorded.length + Math.min(size(), indexesPerMessage));
    for (const [index, event] of held.entries()) {
      recorded.push({ offset: offsetOf(sequence, index), recordedAt: new Date(0), subject: "", event });
    }
  }
  return recorded;
}

const context = () => emptyContext({ read: () => emptyOf() });

async function* emptyOf(): AsyncGenerator<RecordedEvent, void> {}

/** Writes the index of the events. `size`: how many the next batch has. */
export async function applyInBatches({ db }: Database, events: readonly RecordedEvent[], size: () => number) {
  const left = [...events];
  while (left.length > 0) {
    const batch = left.splice(0, size());
    for (const own of Map.groupBy(batch, ({ event }) => event.source.split("/")[0]).values()) {
      await db.transaction().execute(async (tx) => {
        for (const view of [eventGroups, eventBlocks, eventPositions]) await view.apply(tx, own, context());
      });
    }
  }
}
