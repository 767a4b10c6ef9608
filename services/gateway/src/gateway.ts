import { ToldConditions } from "@tapedeck/shared/service/condition";
import { type ReadinessCheck, readinessOf } from "@tapedeck/shared/service/health";
import type { Logger } from "@tapedeck/shared/service/logger";
import { createMetrics } from "@tapedeck/shared/service/metrics";
import { pause } from "@tapedeck/shared/sync/delay";
import { knownTokens } from "@tapedeck/shared/tokens/known-tokens";
import { openTokenStore } from "@tapedeck/shared/tokens/store";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import { version } from "@tapedeck/shared/version";
import { maintainApi } from "./apis/maintain/maintain-api.ts";
import { recorderRelay } from "./apis/recorder/relay.ts";
import { rktApi } from "./apis/rkt/rkt-api.ts";
import { skaffoldApi } from "./apis/skaffold/skaffold-api.ts";
import { tapedeckApi } from "./apis/tapedeck/tapedeck-api.ts";
import { vagrantApi } from "./apis/vagrant/vagrant-api.ts";
import { type Authenticator, everyone } from "./auth/authenticator.ts";
import { openEndpoint } from "./auth/open-endpoint.ts";
import { tokenApi } from "./auth/token-api.ts";
import { tokenAuthenticator } from "./auth/token-authenticator.ts";
import type { Endpoint, GatewayConfig } from "./config.ts";
import { controlClient } from "./control-client.ts";
import { limitedAuthenticator } from "./limits/limited-authenticator.ts";
import { callerLimits } from "./limits/limits.ts";
import { linkLog } from "./log-link.ts";
import { maintainClient } from "./maintain-client.ts";
import { type ApiName, gatewayMetrics } from "./metrics.ts";
import { positions } from "./positions.ts";
import { queryClient } from "./query-client.ts";
import { type Address, splitAddress } from "./transports/address.ts";
import { callerOf as grpcCaller } from "./transports/grpc/authentication.ts";
import { callLimits } from "./transports/grpc/call-limits.ts";
import { recorderServices } from "./transports/grpc/recorder-service.ts";
import { rktServices } from "./transports/grpc/rkt-service.ts";
import { type GrpcServer, type GrpcServices, grpcServer } from "./transports/grpc/server.ts";
import { skaffoldServices } from "./transports/grpc/skaffold-service.ts";
import { tapedeckServices } from "./transports/grpc/tapedeck-service.ts";
import { vagrantServices } from "./transports/grpc/vagrant-service.ts";
import { callerOf as httpCaller } from "./transports/http/authentication.ts";
import { aboutRoute } from "./transports/http/routes/about-route.ts";
import { apiRoutes } from "./transports/http/routes/api-routes.ts";
import { maintainRoutes } from "./transports/http/routes/maintain-routes.ts";
import { openApiPage } from "./transports/http/routes/openapi-page.ts";
import { operationsRoutes } from "./transports/http/routes/operations-routes.ts";
import { skaffoldRoutes } from "./transports/http/routes/skaffold-routes.ts";
import { tokenRoutes } from "./transports/http/routes/token-routes.ts";
import { httpServer, listenHttp } from "./transports/http/server.ts";
import { openCertificate } from "./transports/tls.ts";

export type Gateway = AsyncDisposable & {
  /** "host:port" by what listens there: `grpc`, `http`, and the endpoints as "<source> grpc" and "<source> http". */
  readonly addresses: Readonly<Record<string, string>>;
  /** Rejects when it can't go on and won't mend by itself; the message is one sentence for people. */
  readonly failed: Promise<never>;
};

/** A failure that comes as soon as this is one of the start; a log that is away is not waited for. */
const startMs = 5_000;

/** How old an answer of grpc.health.v1 may be. */
const healthMs = 2_000;

/**
 * Serves the log and query's answers to everyone. Owns no data; every request stands alone. Listens also while the log
 * or query are away, and answers `not_ready` until they are there.
 */
export async function startGateway(config: GatewayConfig, logger: Logger): Promise<Gateway> {
  await using stack = new AsyncDisposableStack();
  const say = (message: string) => logger.warn(message);
  const ours = config.tls && stack.use(openCertificate(config.tls, { say }));
  // A client that can send no token trusts no certificate of ours either, and an open endpoint is on loopback.
  const certificateOf = (open: Endpoint["open"]) => (open === undefined ? ours : undefined);
  const registry = createMetrics("gateway");
  const metrics = gatewayMetrics(registry, logger);
  const limits = callerLimits(config.limits);
  const link = stack.use(linkLog(config.nats, limits.historyReaders, logger));
  const log = () => metrics.counted(link.reader());
  const query = stack.use(queryClient(config.query, config.servicesKey, limits.queryMs));
  const relay = stack.use(recorderRelay(config.ingest, config.servicesKey));
  const where = positions(log);
  const control = controlClient(link.line);
  const skaffold = skaffoldApi({ query, log, control, positions: where, refused: metrics.refused });
  const rkt = rktApi({ query, log, positions: where, largeAnswers: limits.largeAnswers });
  const vagrant = vagrantApi({
    query,
    log,
    control,
    positions: where,
    refused: metrics.refused,
    largeAnswers: limits.largeAnswers,
  });
  const tapedeck = tapedeckApi({ query, log, positions: where, ...limits });
  const tokens = tokenApi({
    store: async () => openTokenStore(link.line().connection),
    audit: (audit, { id, name, workspace, roles }, { who }) => {
      logger.info({ audit, id, name, workspace, roles, who }, audit);
    },
  });

  const everywhere = limitedAuthenticator(authenticator(), limits.refusalsPerMinute);
  const authenticatorOf = (bound: string | undefined, open: Endpoint["open"]) =>
    bound === undefined || open === undefined || config.auth === "none"
      ? everywhere
      : openEndpoint(bound, config.workspace, everywhere);

  const maintain = maintainApi({
    query,
    services: stack.use(maintainClient(config, config.servicesKey)),
    line: link.line,
    audit: (audit, { who, workspace, token }, about) => {
      logger.info({ audit, who, workspace, token, ...about }, audit);
    },
  });

  const conditions = new ToldConditions();
  link.opened.then(() => conditions.listen(link.line().connection)).catch(() => {}); // the next one is started again
  let failure: Error | undefined;
  const checks: Readonly<Record<string, ReadinessCheck>> = {
    log: async () => {
      if (failure !== undefined) throw failure;
      await link.reader().bounds();
      return undefined;
    },
    recording: () => conditions.now.problems[0],
    query: async () => {
      await query.position();
      return undefined;
    },
  };
  const readiness = () => readinessOf(checks);

  const grpcServers: GrpcServer[] = [];
  const startGrpc = async (at: Address, { source: bound, open }: Bound = {}): Promise<string> => {
    const authenticate = authenticatorOf(bound, open);
    const services: GrpcServices[] = [];
    const options = (api: ApiName) => ({ bound, watch: metrics.watch(api), unreadBytes: limits.unreadBytes });
    if (serves("skaffold", bound)) services.push(skaffoldServices(skaffold, grpcCaller, options("skaffold grpc")));
    if (serves("rkt", bound)) services.push(rktServices(rkt, grpcCaller, options("rkt grpc")));
    if (serves("vagrant", bound)) services.push(vagrantServices(vagrant, grpcCaller, options("vagrant grpc")));
    if (bound === undefined) {
      services.push(tapedeckServices(tapedeck, grpcCaller, options("tapedeck grpc")));
      services.push(recorderServices(relay, grpcCaller, metrics.watch("recorder")));
    }
    const { failed } = metrics.watch("grpc");
    const interceptors = [callLimits({ limits, failed })];
    const { grpc: ofGrpc, arrivalMs } = limits;
    const letting = { authenticate, certificate: certificateOf(open), failed, interceptors };
    const server = stack.use(await grpcServer(at, services, { ...letting, limits: ofGrpc, arrivalMs }));
    grpcServers.push(server);
    return server.address;
  };
  const startHttp = async (at: Address, grpc: string, { source: bound, open }: Bound = {}): Promise<string> => {
    const authenticate = authenticatorOf(bound, open);
    const allowed = { hosts: config.hosts, origins: config.origins };
    const certificate = certificateOf(open);
    const app = await httpServer({ allowed, authenticate, certificate, watch: metrics.watch, limits });
    skaffoldRoutes(app, skaffold, httpCaller, { bound, watch: metrics.watch("skaffold http"), limits });
    // A page has no more than EventSource where it can send no token, and that is part of our own API.
    const isOpen = open !== undefined;
    if (bound === undefined || isOpen)
      apiRoutes(app, tapedeck, httpCaller, { bound, watch: metrics.watch("api"), limits });
    if (bound === undefined) {
      maintainRoutes(app, maintain, httpCaller, { watch: metrics.watch("api"), limits });
      tokenRoutes(app, tokens, httpCaller, metrics.watch("api"));
      await openApiPage(app);
      aboutRoute(app, { version, grpc, auth: config.auth, authenticate });
      operationsRoutes(app, {
        readiness,
        warnings: () => conditions.now.warnings,
        metrics: registry,
        grpc,
        needsToken: config.auth !== "none",
      });
    }
    const address = await listenHttp(app, at);
    stack.defer(() => app.close());
    return address;
  };

  const grpc = await startGrpc(config.grpc);
  const addresses: Record<string, string> = { grpc, http: await startHttp(config.http, grpc) };
  for (const endpoint of config.endpoints) {
    const { source } = endpoint;
    const [grpcAt, httpAt] = [endpoint.grpc, endpoint.http].map((text) => text && splitAddress(text));
    if (grpcAt) addresses[`${source} grpc`] = await startGrpc(grpcAt, endpoint);
    if (httpAt) addresses[`${source} http`] = await startHttp(httpAt, grpc, endpoint);
  }

  const closing = new AbortController();
  stack.defer(() => closing.abort());
  void tellHealth(grpcServers, async () => (await readiness()).ready, closing.signal);
  link.failed.catch((error: Error) => {
    failure = error;
  });
  await Promise.race([link.opened, link.failed, pause(startMs, closing.signal)]);

  const owned = stack.move();
  return { addresses, failed: link.failed, [Symbol.asyncDispose]: () => owned.disposeAsync() };

  function authenticator(): Authenticator {
    if (config.auth === "none") return everyone(config.workspace);
    const warn = (message: string, err?: unknown) => logger.warn({ err }, message);
    return tokenAuthenticator(stack.use(knownTokens({ line: link.line, warn })));
  }
}

/** The endpoint that a listener is of, if any. */
type Bound = Partial<Pick<Endpoint, "source" | "open">>;

/** Whether a listener for one source, where `bound` names it, offers this upstream's API; developer/project may be any. */
function serves(upstream: UpstreamName, bound: string | undefined): boolean {
  const parts = bound?.split("/") ?? [];
  return parts.length < 3 || parts.at(-1) === upstream;
}

async function tellHealth(
  servers: readonly GrpcServer[],
  isReady: () => Promise<boolean>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const isServing = await isReady();
    for (const server of servers) server.setServing(isServing);
    await pause(healthMs, signal);
  }
}
