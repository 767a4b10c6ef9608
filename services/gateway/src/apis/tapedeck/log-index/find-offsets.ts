import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { Filter } from "@tapedeck/shared/filter/filter";
import type { LogReader } from "@tapedeck/shared/log/log";
import type { Offset } from "@tapedeck/shared/log/offset";
import { belongsToLog, formatPosition, parsePosition } from "@tapedeck/shared/log/position";
import type { QueryClient } from "../../../query-client.ts";
import { listRequest } from "../list-request.ts";

/** Query's index of the log. */
export type EventFinder = Pick<QueryClient, "findEvents">;

/** Offsets in (afterOffset, untilOffset]. */
export type HistoryRange = { readonly afterOffset: Offset; readonly untilOffset: Offset };

/** Which events are asked for: the `limit` newest or first ones of a filter in a range. */
export type OffsetSearch = HistoryRange & {
  readonly workspace: string;
  readonly filter: Filter;
  readonly limit: number;
  readonly newest: boolean;
};

/** `reached`: query's checkpoint; later events are not found yet. */
export type FoundOffsets = { readonly offsets: readonly Offset[]; readonly reached: Offset };

/**
 * Where the events are, in the order of the log. Undefined while query can't say it.
 * @throws TapedeckError when query refuses the question
 */
export async function findOffsets(
  log: Pick<LogReader, "epoch" | "formerEpochs">,
  query: EventFinder,
  { workspace, filter, afterOffset, untilOffset, limit, newest }: OffsetSearch,
): Promise<FoundOffsets | undefined> {
  const { epoch } = log;
  try {
    const { positions, ...answer } = await query.findEvents({
      filter: listRequest({ workspace }, { filter, kinds: filter.kinds ?? [], limit }),
      after: formatPosition({ epoch, offset: afterOffset }),
      until: formatPosition({ epoch, offset: untilOffset }),
      newest,
    });
    const checkpoint = parsePosition(answer.reached);
    // The tables may still be those of a log that was replaced.
    if (checkpoint === undefined || !belongsToLog(log, checkpoint)) return undefined;
    return {
      offsets: positions.flatMap((position) => parsePosition(position)?.offset ?? []),
      reached: checkpoint.offset,
    };
  } catch (error) {
    if (error instanceof TapedeckError && error.code === "not_ready") return undefined;
    throw error;
  }
}
