import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { LogReader } from "@tapedeck/shared/log/log";
import { earlierOf, endOf, logStart, type Offset } from "@tapedeck/shared/log/offset";
import { OutOfRangeError } from "@tapedeck/shared/log/out-of-range";
import { parsePosition } from "@tapedeck/shared/log/position";
import { positions } from "../../positions.ts";

type Log = Pick<LogReader, "epoch" | "formerEpochs" | "bounds" | "now" | "firstSince">;

/**
 * Where a sink continues in this log, so that nothing is left out: after its cursor, as far as this log has what the cursor's log had.
 * A log that shares nothing with it is new to the sink.
 */
export function continued({ epoch, formerEpochs }: Pick<Log, "epoch" | "formerEpochs">, cursor: string): Offset {
  const position = parsePosition(cursor);
  if (position === undefined) return logStart;
  if (position.epoch === epoch) return position.offset;
  const former = formerEpochs.find((one) => one.epoch === position.epoch);
  return former === undefined ? logStart : earlierOf(position.offset, endOf(former.lastSeq));
}

/** The offset that `start` means; from the first event that is kept, where the log has dropped what it names. */
export async function startOffset(log: Log, start: string): Promise<Offset> {
  try {
    return await positions(() => log).resolveAfter(start);
  } catch (error) {
    if (error instanceof OutOfRangeError) return offsetAfterLoss(error);
    throw error;
  }
}

/** Where reading goes on after events that the log has dropped or lost. */
export function offsetAfterLoss(error: OutOfRangeError): Offset {
  const earliest = parsePosition(error.details.earliest ?? "");
  if (earliest === undefined) throw new TapedeckError("internal", error.message, {}, { cause: error });
  return earliest.offset;
}
