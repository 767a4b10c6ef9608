import { recordedNames } from "@tapedeck/shared/log/workspace-logs";
import { ReportedConditions } from "@tapedeck/shared/service/condition";
import { type Readiness, reportReadiness } from "@tapedeck/shared/service/health";
import type { Logger } from "@tapedeck/shared/service/logger";
import { createMetrics } from "@tapedeck/shared/service/metrics";
import { openCertificate } from "@tapedeck/shared/service/tls/certificate";
import { servicesChannel } from "@tapedeck/shared/service/tls/grpc-credentials";
import { delay } from "@tapedeck/shared/sync/delay";
import { knownTokens } from "@tapedeck/shared/tokens/known-tokens";
import { listWorkspaces } from "./apis/maintain/workspaces/list-workspaces.ts";
import { gatewayApis } from "./apis.ts";
import { AuditLog } from "./audit/audit-log.ts";
import { SignInAudit } from "./audit/sign-in-audit.ts";
import { type Authenticator, everyone } from "./auth/authenticator.ts";
import { type ProviderSignIn, type ProviderSignInOptions, providerSignIn } from "./auth/provider/provider-sign-in.ts";
import { tokenAuthenticator } from "./auth/token-authenticator.ts";
import type { GatewayConfig } from "./config.ts";
import { limitedAuthenticator } from "./limits/limited-authenticator.ts";
import { callerLimits } from "./limits/limits.ts";
import { Listeners } from "./listeners.ts";
import { type LogLink, linkLog } from "./log-link.ts";
import { maintainClient } from "./maintain-client.ts";
import { gatewayMetrics } from "./metrics.ts";
import { OtherWorkspaces } from "./other-workspaces.ts";
import { queryClient } from "./query-client.ts";
import { gatewayReadiness } from "./readiness.ts";
import type { SinkTimes } from "./sinks/delivery/times.ts";
import { UnrecordedEndpoints } from "./unrecorded-endpoints.ts";
import { workspaceMetrics } from "./workspace-metrics.ts";
import { QueryRoutes, routedQuery } from "./workspaces/query-routes.ts";

/** A running gateway. Disposing it closes its listeners. */
export type Gateway = AsyncDisposable & {
  /** "host:port" by what listens there: `grpc`, `http`, and the endpoints as "<source> grpc" and "<source> http". */
  readonly addresses: Readonly<Record<string, string>>;
  /** Rejects on a failure that will not resolve by itself; the message is one sentence for people. */
  readonly failed: Promise<never>;
};

/** A failure within this time is one of the start. A log that stays away longer is not waited for. */
const startMs = 5_000;

/** Services that start together wait for each other: a gateway that is not ready for longer says so. */
const settlingMs = 15_000;

/** How old an answer of grpc.health.v1 may be. */
const healthMs = 2_000;

export type GatewayTimes = {
  /** How often the identity provider is asked. */
  readonly provider?: ProviderSignInOptions["times"];
  /** The longest silence of an HTTP stream. */
  readonly idleMs?: number;
  readonly sinks?: Partial<SinkTimes>;
};

/**
 * Serves the log and query's answers to everyone. Owns no data; every request stands alone. Listens also while the log
 * or query are away, and answers `not_ready` until they are back.
 */
export async function startGateway(config: GatewayConfig, logger: Logger, times: GatewayTimes = {}): Promise<Gateway> {
  await using stack = new AsyncDisposableStack();
  const warn = (message: string) => logger.warn(message);
  const registry = createMetrics("gateway");
  const certificate = config.tls && stack.use(openCertificate(config.tls, { warn, registry }));
  const channel = servicesChannel(config.servicesCa);
  const limits = callerLimits(config.limits);
  const link = stack.use(linkLog(config.nats, limits.historyReaders, logger));
  const auditLog = stack.use(new AuditLog({ nats: link.nats, bounds: config.audit, logger }));
  const metrics = gatewayMetrics(registry, logger, auditLog.record);
  const dial = (address: string) => queryClient(address, config.servicesKey, limits.queryMs, channel);
  const routes = new QueryRoutes({ address: config.query, dial });
  const query = stack.use(routedQuery(routes));
  const addresses = { ingest: config.ingest, queries: () => routes.addresses() };
  const services = stack.use(maintainClient(addresses, config.servicesKey, channel));
  const { apis, workspaces } = gatewayApis({
    config,
    channel,
    link,
    query,
    services,
    limits,
    metrics,
    auditLog,
    logger,
    registry,
    sinkTimes: times.sinks,
    stack,
  });
  workspaceMetrics(registry, () => listWorkspaces({ nats: link.nats, query, services }, undefined));
  const conditions = new ReportedConditions();
  link.opened
    .then(() => {
      conditions.listen(link.nats().connection);
      // Until the connection is closed.
      link.workspaces().onRemoval(({ workspace, state, epochs }) => {
        if (state === "done") workspaces.removed(workspace, epochs);
      });
    })
    .catch(() => {}); // the next gateway tries again
  const readiness = gatewayReadiness({ link, workspaces, query, conditions });
  reportReadiness(registry, readiness);

  const own = authenticator(config, link, logger, stack);
  const people = signInOf(config, own, { audit: new SignInAudit(auditLog.record, logger), logger, times });
  if (people !== undefined) stack.use(people);
  const closing = new AbortController();
  stack.defer(() => closing.abort());
  const mapped = routes.follow(link, closing.signal);
  const authenticate = limitedAuthenticator(people?.authenticate ?? own, limits.refusalsPerMinute);
  const endpoints = new UnrecordedEndpoints({ config, logs: link.logs });
  const others = new OtherWorkspaces(config, async () => recordedNames(link.nats().connection));
  // Readiness says that all logs are away.
  const ofLogs = async () =>
    (await Promise.all([endpoints.warnings(), others.warnings()].map((found) => found.catch(() => [])))).flat();
  const warnings = async () => [
    ...conditions.now.warnings,
    ...(await Promise.all([workspaces.problems(), routes.problems(), ofLogs()])).flat(),
  ];
  const health = { readiness, warnings };
  const listeners = stack.use(
    new Listeners({
      config,
      apis,
      authenticate,
      pageSignIn: people?.pageSignIn,
      certificate,
      limits,
      metrics,
      registry,
      health,
      idleMs: times.idleMs,
    }),
  );
  const listening = await listeners.start();

  void reportHealth({ listeners, readiness, logger, signal: closing.signal });
  void warnOnce({ warnings: ofLogs, opened: link.opened, warn });
  const { failed } = link;
  await Promise.race([mapped, failed, delay(startMs, closing.signal)]);

  const owned = stack.move();
  return { addresses: listening, failed, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

function authenticator(
  config: GatewayConfig,
  { nats }: LogLink,
  logger: Logger,
  stack: AsyncDisposableStack,
): Authenticator {
  if (config.auth === "none") return everyone(config.workspace);
  const warn = (message: string, err?: unknown) => logger.warn({ err }, message);
  return tokenAuthenticator(stack.use(knownTokens({ connection: nats, warn })));
}

function signInOf(
  { oidc: settings, servicesKey }: GatewayConfig,
  tokens: Authenticator,
  { times, ...more }: Pick<ProviderSignInOptions, "audit" | "logger"> & { readonly times: GatewayTimes },
): ProviderSignIn | undefined {
  return settings && providerSignIn({ settings, servicesKey, tokens, times: times.provider, ...more });
}

type WarnOnce = {
  readonly warnings: () => Promise<readonly string[]>;
  readonly opened: Promise<void>;
  readonly warn: (message: string) => void;
};

/** Once, when NATS is reached. Later changes are in /readyz. */
async function warnOnce({ warnings, opened, warn }: WarnOnce): Promise<void> {
  await opened;
  for (const text of await warnings()) warn(text);
}

type ReportHealth = {
  readonly listeners: Listeners;
  readonly readiness: () => Promise<Readiness>;
  readonly logger: Logger;
  readonly signal: AbortSignal;
};

/** Answers grpc.health.v1, and logs each change: callers without a token do not see the reasons. */
async function reportHealth({ listeners, readiness, logger, signal }: ReportHealth): Promise<void> {
  const startedAt = performance.now();
  let last = "";
  while (!signal.aborted) {
    const { ready, checks } = await readiness();
    listeners.setServing(ready);
    const now = ready ? "ready" : "not ready";
    const isStarting = last === "" && !ready && performance.now() - startedAt < settlingMs;
    if (last !== now && !isStarting && !signal.aborted && (last !== "" || !ready)) logger.warn({ checks }, now);
    if (!isStarting) last = now;
    await delay(healthMs, signal);
  }
}
