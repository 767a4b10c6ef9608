import type { SetAsideRequest, SetAsideResponse } from "@tapedeck/proto/tapedeck/v1/query";
import { storedOffset } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { readConsistently } from "../db/read.ts";
import { timestampOf } from "../db/timestamp.ts";
import { readSetAside } from "../projecting/set-aside.ts";
import type { ApiDeps } from "./deps.ts";
import { notProjected } from "./reach.ts";

const maxSources = 100;

export async function setAside({ database }: ApiDeps, { workspace }: SetAsideRequest): Promise<SetAsideResponse> {
  return readConsistently(database(), async (tx, checkpoint) => {
    if (checkpoint === undefined) throw notProjected();
    const written = (offset: number) => formatPosition({ epoch: checkpoint.epoch, offset: storedOffset(offset) });
    const sources = await readSetAside(tx, { ...(workspace !== "" && { workspace }), limit: maxSources });
    return {
      sources: sources.map(({ source, events, first_position, last_position, last_at, error_code, error }) => ({
        source,
        error_code,
        error,
        events: BigInt(events),
        first_position: written(first_position),
        last_position: written(last_position),
        last_at: timestampOf(last_at, 0),
      })),
    };
  });
}
