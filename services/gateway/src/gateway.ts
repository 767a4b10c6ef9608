import type { Metadata } from "@grpc/grpc-js";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { type ReadinessCheck, readinessOf } from "@tapedeck/shared/service/health";
import type { Logger } from "@tapedeck/shared/service/logger";
import { createMetrics } from "@tapedeck/shared/service/metrics";
import { connectNats } from "@tapedeck/shared/service/nats";
import { recorderRelay } from "./apis/recorder/relay.ts";
import { skaffoldApi } from "./apis/skaffold/skaffold-api.ts";
import { tapedeckApi } from "./apis/tapedeck/tapedeck-api.ts";
import type { Endpoint, GatewayConfig } from "./config.ts";
import { controlClient } from "./control-client.ts";
import { positions } from "./positions.ts";
import { queryClient } from "./query-client.ts";
import { recorderServices } from "./transports/grpc/recorder-service.ts";
import { grpcServer } from "./transports/grpc/server.ts";
import { skaffoldServices } from "./transports/grpc/skaffold-service.ts";
import { apiRoutes } from "./transports/http/api-routes.ts";
import { operationsRoutes } from "./transports/http/operations-routes.ts";
import { httpServer, listenHttp } from "./transports/http/server.ts";
import { skaffoldRoutes } from "./transports/http/skaffold-routes.ts";
import { viewers } from "./viewers.ts";

export type Gateway = AsyncDisposable & {
  /** "host:port" by what listens there: grpc, http, and the endpoints by their source. */
  readonly addresses: Readonly<Record<string, string>>;
};

const skaffoldServiceNames = ["proto.SkaffoldService", "proto.v2.SkaffoldV2Service"];

/** Serves the log and query's answers to everyone. Owns no data; every request stands alone. */
export async function startGateway(config: GatewayConfig, log: Logger): Promise<Gateway> {
  const stack = new AsyncDisposableStack();
  try {
    const metrics = createMetrics("gateway");
    const nats = stack.adopt(await connectNats("gateway", config.nats, log), (connection) => connection.close());
    const recorded = stack.use(await openLog(nats, { syncKnown: true, warn: (message) => log.warn(message) }));
    const query = stack.use(queryClient(config.query, config.servicesKey));
    const relay = stack.use(recorderRelay(config.ingest, config.servicesKey));
    const where = positions(recorded.reader);
    const skaffold = skaffoldApi({
      query,
      log: recorded.reader,
      control: controlClient(nats),
      positions: where,
    });
    const tapedeck = tapedeckApi({ query, log: recorded.reader, positions: where });
    const viewed = viewers(metrics);

    const onInternal = (error: unknown) => log.error({ err: error }, "internal error");
    const { workspace } = config;
    const grpcCaller = (call: { getPeer(): string; metadata: Metadata }) => ({ workspace, who: call.getPeer() });
    const httpCaller = (request: { ip: string }) => ({ workspace, who: request.ip });

    const checks: Readonly<Record<string, ReadinessCheck>> = {
      log: async () => failure(recorded.reader.bounds()),
      query: async () => failure(query.position()),
    };

    const startHttp = async (host: string, port: number, bound?: string) => {
      const app = await httpServer({
        allowed: { hosts: config.hosts, origins: config.origins },
        bodyLimit: 4 << 20,
        maxMessage: 256 << 10,
        seen: (api, signal) => viewed.seen(api, signal),
        onInternal,
      });
      skaffoldRoutes(app, skaffold, httpCaller, { bound, onInternal });
      if (bound === undefined) {
        apiRoutes(app, tapedeck, httpCaller, onInternal);
        operationsRoutes(app, () => readinessOf(checks), metrics);
      }
      const address = await listenHttp(app, host, port);
      stack.defer(() => app.close());
      return address;
    };
    const startGrpc = async (host: string, port: number, bound?: string) => {
      const services = [skaffoldServices(skaffold, grpcCaller, { bound, onInternal, seen: viewed.seen })];
      const names = [...skaffoldServiceNames];
      if (bound === undefined) {
        services.push(recorderServices(relay, grpcCaller));
        names.push("tapedeck.v1.Recorder");
      }
      return stack.use(await grpcServer(host, port, services, names)).address;
    };

    const addresses: Record<string, string> = {
      grpc: await startGrpc(config.grpc.host, config.grpc.port),
      http: await startHttp(config.http.host, config.http.port),
    };
    for (const endpoint of config.endpoints) {
      for (const [kind, start] of [["grpc", startGrpc] as const, ["http", startHttp] as const]) {
        const at = hostPort(endpoint, kind);
        if (at !== undefined) addresses[`${endpoint.source} ${kind}`] = await start(at.host, at.port, endpoint.source);
      }
    }
    const owned = stack.move();
    return { addresses, [Symbol.asyncDispose]: () => owned.disposeAsync() };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

async function failure(asked: Promise<unknown>): Promise<string | undefined> {
  return asked.then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
}

function hostPort(endpoint: Endpoint, kind: "grpc" | "http"): { host: string; port: number } | undefined {
  const address = endpoint[kind];
  if (address === undefined) return undefined;
  const at = address.lastIndexOf(":");
  return { host: address.slice(0, at), port: Number(address.slice(at + 1)) };
}
