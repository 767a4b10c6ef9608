import { ReportedConditions } from "@tapedeck/shared/service/condition";
import { type Readiness, readinessOf } from "@tapedeck/shared/service/health";
import type { Logger } from "@tapedeck/shared/service/logger";
import { type GatewayApis, type GatewayApisDeps, gatewayApis } from "../apis.ts";
import { type LogLink, linkLog } from "../log-link.ts";
import { type MaintainClient, maintainClient } from "../maintain-client.ts";
import { type QueryClient, queryClient } from "../query-client.ts";
import type { ShardConfig } from "./settings.ts";

/** A log with its ingest and its query, as the gateway reaches and serves them. */
export type Shard = {
  readonly name: string;
  readonly link: LogLink;
  readonly query: QueryClient;
  readonly services: MaintainClient;
  readonly apis: GatewayApis;
  readonly readiness: () => Promise<Readiness>;
  /** The warnings of its recorders. */
  readonly warnings: () => readonly string[];
};

export type OpenShard = Pick<GatewayApisDeps, "channel" | "limits" | "metrics" | "auditLog" | "stack"> & {
  readonly shard: Pick<ShardConfig, "name" | "nats" | "query" | "ingest">;
  readonly servicesKey: string;
  readonly logger: Logger;
  /** The caller's connection to the shard's log. Default: one that is made here. */
  readonly link?: LogLink;
};

/** Connects in the background. The stack owns the connections that are made here. */
export function openShard({ shard, servicesKey, link: sharedLink, ...parts }: OpenShard): Shard {
  const { channel, limits, logger, stack } = parts;
  const { name, nats } = shard;
  const link = sharedLink ?? stack.use(linkLog(nats, limits.historyReaders, logger));
  const query = stack.use(queryClient(shard.query, servicesKey, limits.queryMs, channel));
  const services = stack.use(maintainClient(shard, servicesKey, channel));
  const apis = gatewayApis({ ...parts, config: { ...shard, servicesKey }, link, query, services });
  const conditions = new ReportedConditions();
  link.opened.then(() => conditions.listen(link.nats().connection)).catch(() => {}); // the next gateway tries again
  return {
    name,
    link,
    query,
    services,
    apis,
    readiness: readinessOfShard(link, query, conditions),
    warnings: () => conditions.now.warnings,
  };
}

function readinessOfShard(link: LogLink, query: QueryClient, conditions: ReportedConditions): () => Promise<Readiness> {
  let failure: Error | undefined;
  link.failed.catch((error: Error) => {
    failure = error;
  });
  return () =>
    readinessOf({
      log: async () => {
        if (failure !== undefined) throw failure;
        await link.reader().bounds();
        return undefined;
      },
      recording: () => conditions.now.problems[0],
      query: async () => {
        await query.position().catch(withItsCause);
        return undefined;
      },
    });
}

/** Operators see why query can't be asked, such as a certificate that is not trusted; clients do not. */
function withItsCause(error: Error): never {
  const { cause } = error;
  const details = cause instanceof Error && "details" in cause ? String(cause.details) : "";
  throw details === "" ? error : new Error(`${error.message} (${details})`, { cause });
}
