import type { Registry } from "@tapedeck/shared/service/metrics";
import type { Certificate } from "@tapedeck/shared/service/tls/certificate";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import { version } from "@tapedeck/shared/version";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { GatewayApis } from "./apis.ts";
import type { Authenticator } from "./auth/authenticator.ts";
import { openEndpoint } from "./auth/open-endpoint.ts";
import type { PageSignIn } from "./auth/provider/page-sign-in.ts";
import { type TokenSeal, tokenSeal } from "./auth/sealed-token.ts";
import type { Endpoint, GatewayConfig } from "./config.ts";
import type { CallerLimits } from "./limits/limits.ts";
import type { ApiName, GatewayMetrics } from "./metrics.ts";
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
import { auditRoutes } from "./transports/http/routes/audit-routes.ts";
import { maintainRoutes } from "./transports/http/routes/maintain-routes.ts";
import { openApiPage } from "./transports/http/routes/openapi-page.ts";
import { type Operations, operationsRoutes } from "./transports/http/routes/operations-routes.ts";
import { beginPath, providerSignInRoutes } from "./transports/http/routes/provider-sign-in-routes.ts";
import { signInRoutes } from "./transports/http/routes/sign-in-routes.ts";
import { sinkRoutes } from "./transports/http/routes/sink-routes.ts";
import { skaffoldRoutes } from "./transports/http/routes/skaffold-routes.ts";
import { tokenRoutes } from "./transports/http/routes/token-routes.ts";
import { httpServer, listenHttp } from "./transports/http/server.ts";
import { presentedLogin } from "./transports/http/sign-in-cookie.ts";
import { docsRoutes } from "./transports/http/static/docs-routes.ts";
import { pageRoutes } from "./transports/http/static/page-routes.ts";
import { mcpRoute } from "./transports/mcp/mcp-route.ts";

export type ListenersOptions = {
  readonly config: GatewayConfig;
  readonly apis: GatewayApis;
  readonly authenticate: Authenticator;
  /** Undefined: people sign in on the page with tokens only. */
  readonly pageSignIn: PageSignIn | undefined;
  /** Undefined: without TLS. */
  readonly certificate: Certificate | undefined;
  readonly limits: CallerLimits;
  readonly metrics: GatewayMetrics;
  readonly registry: Registry;
  readonly health: Pick<Operations, "readiness" | "warnings">;
  /** The longest silence of an HTTP stream. */
  readonly idleMs?: number | undefined;
};

/** The source that a listener serves, and whether callers without a token may read; neither for the gateway's own. */
type Bound = Partial<Pick<Endpoint, "source" | "open">>;

/** The gateway's listeners: its own, and those of `endpoints`. */
export class Listeners implements AsyncDisposable {
  readonly #options: ListenersOptions;
  readonly #stack = new AsyncDisposableStack();
  readonly #grpcServers: GrpcServer[] = [];
  readonly #seal: TokenSeal;

  constructor(options: ListenersOptions) {
    this.#options = options;
    this.#seal = tokenSeal(options.config.servicesKey);
  }

  /** "host:port" by what listens there: `grpc`, `http`, "<source> grpc", "<source> http". */
  async start(): Promise<Readonly<Record<string, string>>> {
    const { config } = this.#options;
    const grpc = await this.#startGrpc(config.grpc);
    const addresses = new Map([
      ["grpc", grpc],
      ["http", await this.#startHttp(config.http, grpc)],
    ]);
    for (const endpoint of config.endpoints) {
      const { source } = endpoint;
      const [grpcAt, httpAt] = [endpoint.grpc, endpoint.http].map((text) => text && splitAddress(text));
      if (grpcAt) addresses.set(`${source} grpc`, await this.#startGrpc(grpcAt, endpoint));
      if (httpAt) addresses.set(`${source} http`, await this.#startHttp(httpAt, grpc, endpoint));
    }
    return Object.fromEntries(addresses);
  }

  /** What grpc.health.v1 answers on every listener. */
  setServing(isServing: boolean): void {
    for (const server of this.#grpcServers) server.setServing(isServing);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }

  async #startGrpc(at: Address, bound: Bound = {}): Promise<string> {
    const { limits, metrics } = this.#options;
    const { failed } = metrics.watch("grpc");
    const server = await grpcServer(at, this.#servicesFor(bound), {
      authenticate: this.#authenticatorFor(bound),
      certificate: this.#certificateFor(bound),
      failed,
      interceptors: [callLimits({ limits, failed })],
      limits: limits.grpc,
      arrivalMs: limits.arrivalMs,
    });
    this.#grpcServers.push(this.#stack.use(server));
    return server.address;
  }

  #servicesFor({ source: bound }: Bound): GrpcServices[] {
    const { apis, limits, metrics } = this.#options;
    const options = (api: ApiName) => ({ bound, watch: metrics.watch(api), unreadBytes: limits.unreadBytes });
    const services: GrpcServices[] = [];
    if (serves("skaffold", bound)) services.push(skaffoldServices(apis.skaffold, grpcCaller, options("skaffold grpc")));
    if (serves("rkt", bound)) services.push(rktServices(apis.rkt, grpcCaller, options("rkt grpc")));
    if (serves("vagrant", bound)) services.push(vagrantServices(apis.vagrant, grpcCaller, options("vagrant grpc")));
    if (bound === undefined) {
      services.push(tapedeckServices(apis.tapedeck, grpcCaller, options("tapedeck grpc")));
      services.push(recorderServices(apis.relay, grpcCaller, metrics.watch("recorder")));
    }
    return services;
  }

  /** `grpc`: the address of the gateway's own gRPC listener, which pages name. */
  async #startHttp(at: Address, grpc: string, bound: Bound = {}): Promise<string> {
    const { config, apis, limits, metrics, registry, health, idleMs } = this.#options;
    const { source, open } = bound;
    const authenticate = this.#authenticatorFor(bound);
    const certificate = this.#certificateFor(bound);
    // An endpoint serves no page.
    const seal = source === undefined ? this.#seal : undefined;
    const allowed = { hosts: config.hosts, origins: config.origins };
    const app = await httpServer({ allowed, authenticate, certificate, watch: metrics.watch, limits, seal });
    const watch = metrics.watch("api");
    skaffoldRoutes(app, apis.skaffold, httpCaller, { bound: source, watch: metrics.watch("skaffold http"), limits });
    // A page that can send no token has only EventSource, which is part of our own API.
    if (source === undefined || open !== undefined) {
      apiRoutes(app, apis.tapedeck, httpCaller, { bound: source, watch, limits, idleMs });
    }
    if (source === undefined) {
      maintainRoutes(app, apis.maintain, httpCaller, { watch, limits });
      tokenRoutes(app, apis.tokens, httpCaller, { authenticate, watch });
      sinkRoutes(app, apis.sinks, httpCaller, watch);
      auditRoutes(app, apis.audit, httpCaller, { watch, limits });
      const { givenPage } = config.sinks;
      mcpRoute(app, apis, httpCaller, { watch, limits, isTls: certificate !== undefined, page: givenPage });
      await openApiPage(app);
      const needsToken = config.auth !== "none";
      const isTls = certificate !== undefined;
      const loginOf = (request: FastifyRequest) => presentedLogin(request, seal, isTls);
      aboutRoute(app, {
        version,
        grpc,
        auth: config.auth,
        privacy: config.privacy,
        signIn: this.#serveProviderSignIn(app),
        docs: docsRoutes(app),
        authenticate,
        loginOf,
      });
      signInRoutes(app, { needsToken, authenticate, seal: this.#seal, isTls, watch });
      operationsRoutes(app, { ...health, metrics: registry, needsToken });
      pageRoutes(app);
    }
    const address = await listenHttp(app, at);
    this.#stack.defer(() => app.close());
    return address;
  }

  /** The provider's sign-in, for /about. */
  #serveProviderSignIn(app: FastifyInstance): { readonly title: string; readonly url: string } | undefined {
    const { config, pageSignIn, metrics } = this.#options;
    const page = config.oidc?.page;
    if (page === undefined || pageSignIn === undefined) return undefined;
    providerSignInRoutes(app, { signIn: pageSignIn, page, watch: metrics.watch("api") });
    return { title: page.title, url: page.origin + beginPath };
  }

  #authenticatorFor({ source, open }: Bound): Authenticator {
    const { config, authenticate } = this.#options;
    return source === undefined || open === undefined || config.auth === "none"
      ? authenticate
      : openEndpoint(source, config.workspace, authenticate);
  }

  /** A client that can send no token trusts no certificate of ours either, and an open endpoint is on loopback. */
  #certificateFor({ open }: Bound): Certificate | undefined {
    return open === undefined ? this.#options.certificate : undefined;
  }
}

/** Whether a listener offers this upstream's API. A bound developer/project may be of any upstream. */
function serves(upstream: UpstreamName, bound: string | undefined): boolean {
  const parts = bound?.split("/") ?? [];
  return parts.length < 3 || parts.at(-1) === upstream;
}
