import type { Lane } from "../db/pipelines.ts";
import type { View } from "../views/view.ts";
import { type Applied, applyBatch, type BatchStart } from "./apply-batch.ts";
import type { Batch } from "./batches.ts";
import { isDataError } from "./data-error.ts";
import type { SetAsideEvent } from "./set-aside.ts";

/** After this many refused events they are recorded, even if no event could be applied since. */
const maxRefused = 256;

/**
 * Applies a batch that can't be applied as a whole: part by part, each in a transaction with its checkpoint. Sets the events
 * that prevent it aside. A part that fails is halved; a part after one that was applied is twice as large. So one refused
 * event of n costs about 2 log n transactions, and each of a run of refused events one, which writes nothing.
 * @throws StatementError when the database went away, CheckpointMovedError as applyBatch does
 */
export async function applyApart(
  connection: Lane,
  views: readonly View[],
  { events, reached }: Batch,
  start: BatchStart,
): Promise<Applied> {
  let { after } = start;
  let applied = 0;
  const setAside: SetAsideEvent[] = [];
  let refused: SetAsideEvent[] = [];
  let isRecorded = false;

  const apply = async (part: Batch) => {
    isRecorded = false;
    const { result, committed } = await connection.transaction((tx) =>
      applyBatch(tx, views, part, { ...start, after }, () => {
        isRecorded = true;
      }),
    );
    await committed;
    after = result.position;
    applied += result.events;
    setAside.push(...result.setAside);
    refused = [];
  };

  let size = Math.ceil(events.length / 2);
  for (let next = 0; next < events.length; ) {
    const part = events.slice(next, next + size);
    try {
      await apply({ events: part, refused });
      next += part.length;
      size *= 2;
    } catch (error) {
      // An error while earlier refused events are recorded says nothing about this part.
      if (!isRecorded || !isDataError(error)) throw error;
      const [only, another] = part;
      if (only !== undefined && another === undefined) {
        refused.push({ recorded: only, error });
        next += 1;
        if (refused.length === maxRefused) await apply({ events: [], refused });
      }
      size = Math.ceil(part.length / 2);
    }
  }
  await apply({ events: [], refused, ...(reached !== undefined && { reached }) });
  return { position: after, events: applied, setAside };
}
