import type { Offset } from "@tapedeck/shared/log/offset";
import { lockCheckpoint, touchCheckpoint } from "../../db/checkpoint.ts";
import { openDatabase } from "../../db/database.ts";
import { views } from "../../views/views.ts";
import { erase } from "../apply-batch.ts";

/**
 * Removes the rows of a workspace's sessions that ended before an offset, for a log that keeps only its end (the demo's). Returns how
 * many sessions it removed. Locks the checkpoint, so no batch is applied meanwhile.
 */
export async function forgetSessions(databaseUrl: string, workspace: string, beforeOffset: Offset): Promise<number> {
  await using database = openDatabase({ url: databaseUrl, connections: 1 });
  return await database.db.transaction().execute(async (tx) => {
    await lockCheckpoint(tx, workspace);
    const old = await tx
      .selectFrom("sessions")
      .select("session")
      .where("workspace", "=", workspace)
      .where("end_position", "<", beforeOffset)
      .where("last_position", "<", beforeOffset)
      .execute();
    await erase(tx, views({ textRows: false }), old);
    await touchCheckpoint(tx, workspace);
    return old.length;
  });
}
