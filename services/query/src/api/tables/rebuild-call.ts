import type { RebuildRequest, RebuildResponse } from "@tapedeck/proto/tapedeck/v1/query";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { isLogMissing } from "@tapedeck/shared/log/jetstream";
import { sequenceOf } from "@tapedeck/shared/log/offset";
import { delay } from "@tapedeck/shared/sync/delay";
import { ForeignCheckpointError } from "../../db/checkpoint.ts";
import { AlreadyProjectedError } from "../../db/lock.ts";
import { DependantsError } from "../../projecting/dependants.ts";
import type { LogToRead, RebuiltBatch } from "../../projecting/rebuild.ts";
import { SwapBlockedError } from "../../projecting/swap.ts";
import type { RebuildTables } from "../deps.ts";

/** How often the caller gets the progress. */
const progressMs = 200;

/** tapedeck.v1.Query/Rebuild. */
export async function* rebuildCall(
  rebuild: RebuildTables,
  { workspace, fresh }: RebuildRequest,
  signal: AbortSignal,
): AsyncGenerator<RebuildResponse, void> {
  const progress = new RebuildProgress();
  const rebuilding = rebuild({
    workspace: workspace === "" ? undefined : workspace,
    fresh,
    signal,
    onBegun: (logs) => progress.begin(logs),
    onProgress: (applied) => progress.add(applied),
  }).catch((cause: unknown) => {
    if (workspace !== "" && isLogMissing(cause)) throw nothingRecorded(workspace, cause);
    throw refused(cause);
  });
  for (let isOver = false; !isOver && !signal.aborted; ) {
    const swapped = await Promise.race([rebuilding, delay(progressMs, signal).then(() => undefined)]);
    if (swapped === false && !signal.aborted) throw stopped();
    isOver = swapped !== undefined;
    yield progress.now();
  }
}

type Reading = {
  readonly first: number;
  readonly last: number;
  readonly messages: number;
  reached: Map<string, number>;
};

/** How far the new tables are, of all logs together. Workspaces in one log are as far as the last of them. */
class RebuildProgress {
  readonly #logs = new Map<string, Reading>();
  readonly #epochs = new Map<string, string>();
  #events = 0n;

  begin(logs: readonly LogToRead[]): void {
    for (const { workspace, log, bounds } of logs) {
      const [first, last] = [sequenceOf(bounds.firstOffset), sequenceOf(bounds.lastOffset)];
      const reading = this.#logs.get(log.epoch) ?? { first, last, messages: bounds.messages, reached: new Map() };
      reading.reached.set(workspace, 0);
      this.#logs.set(log.epoch, reading);
      this.#epochs.set(workspace, log.epoch);
    }
  }

  add({ workspace, position, events }: RebuiltBatch): void {
    this.#logs.get(this.#epochs.get(workspace) ?? "")?.reached.set(workspace, sequenceOf(position));
    this.#events += BigInt(events);
  }

  now(): RebuildResponse {
    const logs = [...this.#logs.values()];
    const sum = (part: (one: Reading) => number) => BigInt(logs.reduce((all, one) => all + Math.max(0, part(one)), 0));
    return {
      first: 1n,
      last: sum(({ first, last }) => last - first + 1),
      reached: sum(({ first, last, reached }) => Math.min(last, ...reached.values()) - first + 1),
      messages: sum(({ messages }) => messages),
      events: this.#events,
    };
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

function nothingRecorded(workspace: string, cause: unknown): TapedeckError {
  return new TapedeckError("not_found", `nothing is recorded in the workspace "${workspace}"`, {}, { cause });
}

/** The caller does not know that query itself ended the rebuild. */
function stopped(): TapedeckError {
  const message =
    "query was stopped before the tables were made: they are unchanged, and the next rebuild continues from there";
  return new TapedeckError("not_ready", message);
}
