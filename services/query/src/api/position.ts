import type { PositionRequest, PositionResponse } from "@tapedeck/proto/tapedeck/v1/query";
import { formatPosition } from "@tapedeck/shared/log/position";
import { readCheckpoint } from "../db/checkpoint.ts";
import type { ApiDeps } from "./deps.ts";
import { askLog, notProjected } from "./reach.ts";

export async function position({ database, log }: ApiDeps, _request: PositionRequest): Promise<PositionResponse> {
  const checkpoint = await readCheckpoint(database().db);
  if (checkpoint === undefined) throw notProjected();
  const { epoch } = checkpoint;
  const { lastOffset } = await askLog(() => log().bounds());
  return {
    position: formatPosition({ epoch, offset: checkpoint.position }),
    log_position: formatPosition({ epoch, offset: lastOffset }),
  };
}
