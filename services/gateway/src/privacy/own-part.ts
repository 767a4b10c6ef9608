import type { KnownHole } from "@tapedeck/shared/log/holes/known-holes";
import type { LogReader } from "@tapedeck/shared/log/log";
import type { MaintainClient } from "../maintain-client.ts";
import type { QueryClient } from "../query-client.ts";
import { isOf } from "./own-developer.ts";
import { ownLog } from "./own-log.ts";
import { ownQuery } from "./own-query.ts";

// What a caller may see is decided here, and nowhere else: all APIs read these, and they are narrowed to one developer.

/** All that the APIs read of what is recorded. */
export type RecordedPart = {
  readonly query: QueryClient;
  /** @throws TapedeckError not_ready */
  readonly log: () => LogReader;
  readonly holes: () => readonly KnownHole[];
  readonly services: Pick<MaintainClient, "waiting">;
};

/** The part of one developer. */
export function ownPart({ query, log, holes, services }: RecordedPart, developer: string): RecordedPart {
  return {
    query: ownQuery(query, developer),
    log: () => ownLog(log(), developer),
    holes: () => holes().filter(({ source }) => isOf(developer, source)),
    services: {
      async *waiting(signal) {
        for await (const item of services.waiting(signal)) if (isOf(developer, item.source)) yield item;
      },
    },
  };
}
