import { skaffoldApi } from "@tapedeck/gateway/apis/skaffold/skaffold-api";
import { everyone } from "@tapedeck/gateway/auth/authenticator";
import { callerLimits } from "@tapedeck/gateway/limits/limits";
import { defaultLimits } from "@tapedeck/gateway/limits/settings";
import { gatewayMetrics } from "@tapedeck/gateway/metrics";
import { positions } from "@tapedeck/gateway/positions";
import type { Address } from "@tapedeck/gateway/transports/address";
import { callerOf as grpcCaller } from "@tapedeck/gateway/transports/grpc/authentication";
import { grpcServer } from "@tapedeck/gateway/transports/grpc/server";
import { skaffoldServices } from "@tapedeck/gateway/transports/grpc/skaffold-service";
import { callerOf as httpCaller } from "@tapedeck/gateway/transports/http/authentication";
import { skaffoldRoutes } from "@tapedeck/gateway/transports/http/routes/skaffold-routes";
import { httpServer, listenHttp } from "@tapedeck/gateway/transports/http/server";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { createMetrics } from "@tapedeck/shared/service/metrics";
import { sourceParts } from "@tapedeck/shared/source";
import type { Tape } from "./tape.ts";
import { tapeQuery } from "./tape-query.ts";

/** "host:port" of both. */
export type ServedTape = AsyncDisposable & { readonly grpc: string; readonly http: string };

/** Serves Skaffold's two APIs from a tape, as the gateway serves them from the log. */
export async function serveTape(tape: Tape, grpcAt: Address, httpAt: Address): Promise<ServedTape> {
  await using stack = new AsyncDisposableStack();
  const metrics = gatewayMetrics(createMetrics("replay"), silentLogger);
  const log = () => tape.reader;
  const api = skaffoldApi({
    query: tapeQuery(tape),
    log,
    positions: positions(log),
    refused: metrics.refused,
    control: {
      call: async () => {
        throw new TapedeckError("upstream_away", "this is a recorded session: nothing can be built or deployed in it");
      },
    },
  });
  const limits = callerLimits(defaultLimits);
  const authenticate = everyone(sourceParts(tape.source).workspace);

  const { failed } = metrics.watch("skaffold grpc");
  const services = skaffoldServices(api, grpcCaller, {
    watch: metrics.watch("skaffold grpc"),
    unreadBytes: limits.unreadBytes,
  });
  const grpc = stack.use(await grpcServer(grpcAt, [services], { authenticate, failed }));
  grpc.setServing(true);
  const allowed = { hosts: [], origins: [] };
  const app = await httpServer({ allowed, authenticate, watch: metrics.watch, limits });
  stack.defer(() => app.close());
  skaffoldRoutes(app, api, httpCaller, { watch: metrics.watch("skaffold http"), limits });
  const http = await listenHttp(app, httpAt);
  const owned = stack.move();
  return { grpc: grpc.address, http, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
