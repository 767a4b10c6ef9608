import type { SetAsideRequest, SetAsideResponse } from "@tapedeck/proto/tapedeck/v1/query";
import { formatPosition } from "@tapedeck/shared/log/position";
import { timestampOf } from "../../db/timestamp.ts";
import { readSetAside } from "../../projecting/set-aside.ts";
import type { ApiDeps } from "../deps.ts";

const maxSources = 100;

export async function setAside({ database }: ApiDeps, { workspace }: SetAsideRequest): Promise<SetAsideResponse> {
  const sources = await readSetAside(database().db, { ...(workspace !== "" && { workspace }), limit: maxSources });
  return {
    sources: sources.map(({ source, epoch, events, first_position, last_position, last_at, error_code, error }) => ({
      source,
      error_code,
      error,
      events: BigInt(events),
      first_position: formatPosition({ epoch, offset: first_position }),
      last_position: formatPosition({ epoch, offset: last_position }),
      last_at: timestampOf(last_at, 0),
    })),
  };
}
