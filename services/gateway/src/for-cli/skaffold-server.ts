import type { LogReader } from "@tapedeck/shared/log/log";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { createMetrics } from "@tapedeck/shared/service/metrics";
import { skaffoldApi } from "../apis/skaffold/skaffold-api.ts";
import { everyone } from "../auth/authenticator.ts";
import type { ControlClient } from "../control-client.ts";
import { callerLimits } from "../limits/limits.ts";
import { defaultLimits } from "../limits/settings.ts";
import { gatewayMetrics } from "../metrics.ts";
import { positions } from "../positions.ts";
import type { QueryClient } from "../query-client.ts";
import type { Address } from "../transports/address.ts";
import { callerOf as grpcCaller } from "../transports/grpc/authentication.ts";
import { grpcServer } from "../transports/grpc/server.ts";
import { skaffoldServices } from "../transports/grpc/skaffold-service.ts";
import { callerOf as httpCaller } from "../transports/http/authentication.ts";
import { skaffoldRoutes } from "../transports/http/routes/skaffold-routes.ts";
import { httpServer, listenHttp } from "../transports/http/server.ts";

// For `tapedeck replay`, which serves a recorded session without a gateway.
export type { QueryClient } from "../query-client.ts";

export type SkaffoldServerOptions = {
  readonly workspace: string;
  readonly log: LogReader;
  readonly query: QueryClient;
  readonly control: ControlClient;
  readonly grpc: Address;
  readonly http: Address;
};

/** Both addresses as "host:port". */
export type SkaffoldServer = AsyncDisposable & { readonly grpc: string; readonly http: string };

/** Serves Skaffold's two APIs, and nothing else of a gateway, from a log and a query client of the same process. */
export async function startSkaffoldServer(options: SkaffoldServerOptions): Promise<SkaffoldServer> {
  await using stack = new AsyncDisposableStack();
  const { query, control } = options;
  const metrics = gatewayMetrics(createMetrics("replay"), silentLogger);
  const log = () => options.log;
  // A recorded session has nothing to control.
  const audit = () => {};
  const api = skaffoldApi({ query, log, positions: positions(log), refused: metrics.refused, audit, control });
  const limits = callerLimits(defaultLimits);
  const authenticate = everyone(options.workspace);

  const { failed } = metrics.watch("skaffold grpc");
  const services = skaffoldServices(api, grpcCaller, {
    watch: metrics.watch("skaffold grpc"),
    unreadBytes: limits.unreadBytes,
  });
  const grpc = stack.use(await grpcServer(options.grpc, [services], { authenticate, failed }));
  grpc.setServing(true);
  const allowed = { hosts: [], origins: [] };
  const app = await httpServer({ allowed, authenticate, watch: metrics.watch, limits });
  stack.defer(() => app.close());
  skaffoldRoutes(app, api, httpCaller, { watch: metrics.watch("skaffold http"), limits });
  const http = await listenHttp(app, options.http);
  const owned = stack.move();
  return { grpc: grpc.address, http, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
