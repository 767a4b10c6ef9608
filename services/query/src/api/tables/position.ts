import type { PositionRequest, PositionResponse } from "@tapedeck/proto/tapedeck/v1/query";
import { formatPosition } from "@tapedeck/shared/log/position";
import { sql } from "kysely";
import { readCheckpoint } from "../../db/checkpoint.ts";
import type { ApiDeps } from "../deps.ts";
import { askLog, notProjected, waitMs } from "../reach.ts";

/** A request that names no workspace only learns whether query and its database answer. */
export async function position(
  { workspace, database, log, progress }: ApiDeps,
  { current }: PositionRequest,
): Promise<PositionResponse> {
  if (workspace === "") {
    await sql`select 1`.execute(database().db);
    return { position: "", log_position: "" };
  }
  if (current) await progress.reached((await askLog(() => log().bounds())).lastOffset, waitMs);
  const checkpoint = await readCheckpoint(database().db, workspace);
  if (checkpoint === undefined) throw notProjected();
  const { epoch } = checkpoint;
  const { lastOffset } = await askLog(() => log().bounds());
  return {
    position: formatPosition({ epoch, offset: checkpoint.position }),
    log_position: formatPosition({ epoch, offset: lastOffset }),
  };
}
