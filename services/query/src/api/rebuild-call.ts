import type { RebuildRequest, RebuildResponse } from "@tapedeck/proto/tapedeck/v1/query";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { type Offset, sequenceOf } from "@tapedeck/shared/log/offset";
import { delay } from "@tapedeck/shared/sync/delay";
import { ForeignCheckpointError } from "../db/checkpoint.ts";
import { AlreadyProjectedError } from "../db/lock.ts";
import { DependantsError } from "../projecting/dependants.ts";
import { SwapBlockedError } from "../projecting/rebuild.ts";
import type { ApiDeps, RebuildTables } from "./deps.ts";

/** How often the caller gets the progress. */
const progressMs = 200;

/** tapedeck.v1.Query/Rebuild. */
export async function* rebuildCall(
  { log }: Pick<ApiDeps, "log">,
  rebuild: RebuildTables,
  { fresh }: RebuildRequest,
  signal: AbortSignal,
): AsyncGenerator<RebuildResponse, void> {
  const { firstOffset, lastOffset, messages } = await log().bounds();
  const [first, last] = [BigInt(sequenceOf(firstOffset)), BigInt(sequenceOf(lastOffset))];
  let reached = 0n;
  let events = 0n;
  const onProgress = (applied: { readonly position: Offset; readonly events: number }) => {
    reached = BigInt(sequenceOf(applied.position));
    events += BigInt(applied.events);
  };
  const rebuilding = rebuild({ fresh, signal, onProgress }).catch((cause: unknown) => {
    throw refused(cause);
  });
  for (let isOver = false; !isOver && !signal.aborted; ) {
    const swapped = await Promise.race([rebuilding, delay(progressMs, signal).then(() => undefined)]);
    if (swapped === false && !signal.aborted) throw stopped();
    isOver = swapped !== undefined;
    yield { first, last, reached, messages: BigInt(messages), events };
  }
}

const curable = [DependantsError, ForeignCheckpointError, SwapBlockedError];

/** The reason of an end that the caller can do something about. Any other error stays in query's log. */
function refused(cause: unknown): unknown {
  if (cause instanceof AlreadyProjectedError) {
    return new TapedeckError("limit_exceeded", "the tables are being rebuilt already: wait for that", {}, { cause });
  }
  if (cause instanceof Error && curable.some((kind) => cause instanceof kind)) {
    return new TapedeckError("not_ready", cause.message, {}, { cause });
  }
  return cause;
}

/** The caller does not know that query itself ended the rebuild. */
function stopped(): TapedeckError {
  const message =
    "query was stopped before the tables were made: they are unchanged, and the next rebuild continues from there";
  return new TapedeckError("not_ready", message);
}
