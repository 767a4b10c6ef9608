import type { Logger } from "@tapedeck/shared/service/logger";
import { delay } from "@tapedeck/shared/sync/delay";
import { readCheckpoints } from "../../db/checkpoint.ts";
import type { Database } from "../../db/database.ts";
import { dropForsaken, dropRetired } from "../swap.ts";

export type KeepDropping = {
  readonly everyMs?: number;
  /** Called with each workspace that was removed and has rows: a swap may have brought them back, hidden. */
  readonly onRemoved: (workspace: string) => void;
  readonly logger: Logger;
  readonly signal: AbortSignal;
};

/** Drops tables that are of no use any more, until the signal. Retries while the database is unavailable. */
export async function keepDropping(
  database: Database,
  { everyMs = 60_000, onRemoved, logger, signal }: KeepDropping,
): Promise<void> {
  while (!signal.aborted) {
    await delay(everyMs, signal);
    if (signal.aborted) return;
    try {
      await dropRetired(database);
      await dropForsaken(database);
      for (const { workspace, removed } of await readCheckpoints(database.db)) if (removed) onRemoved(workspace);
    } catch (err) {
      logger.debug({ err }, "tables can't be dropped now");
    }
  }
}
