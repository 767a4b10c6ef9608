import { ReportedConditions } from "@tapedeck/shared/service/condition";
import { type Readiness, type ReadinessCheck, readinessOf } from "@tapedeck/shared/service/health";
import type { Logger } from "@tapedeck/shared/service/logger";
import { createMetrics } from "@tapedeck/shared/service/metrics";
import { delay } from "@tapedeck/shared/sync/delay";
import { knownTokens } from "@tapedeck/shared/tokens/known-tokens";
import { gatewayApis } from "./apis.ts";
import { type Authenticator, everyone } from "./auth/authenticator.ts";
import { tokenAuthenticator } from "./auth/token-authenticator.ts";
import type { GatewayConfig } from "./config.ts";
import { limitedAuthenticator } from "./limits/limited-authenticator.ts";
import { callerLimits } from "./limits/limits.ts";
import { Listeners } from "./listeners.ts";
import { type LogLink, linkLog } from "./log-link.ts";
import { gatewayMetrics } from "./metrics.ts";
import { type QueryClient, queryClient } from "./query-client.ts";
import { openCertificate } from "./transports/tls.ts";

export type Gateway = AsyncDisposable & {
  /** "host:port" by what listens there: `grpc`, `http`, and the endpoints as "<source> grpc" and "<source> http". */
  readonly addresses: Readonly<Record<string, string>>;
  /** Rejects when it can't go on and won't mend by itself; the message is one sentence for people. */
  readonly failed: Promise<never>;
};

/** A failure within this time is one of the start. A log that stays away longer is not waited for. */
const startMs = 5_000;

/** How old an answer of grpc.health.v1 may be. */
const healthMs = 2_000;

/**
 * Serves the log and query's answers to everyone. Owns no data; every request stands alone. Listens also while the log
 * or query are away, and answers `not_ready` until they are back.
 */
export async function startGateway(config: GatewayConfig, logger: Logger): Promise<Gateway> {
  await using stack = new AsyncDisposableStack();
  const say = (message: string) => logger.warn(message);
  const certificate = config.tls && stack.use(openCertificate(config.tls, { say }));
  const registry = createMetrics("gateway");
  const metrics = gatewayMetrics(registry, logger);
  const limits = callerLimits(config.limits);
  const link = stack.use(linkLog(config.nats, limits.historyReaders, logger));
  const query = stack.use(queryClient(config.query, config.servicesKey, limits.queryMs));
  const apis = gatewayApis({ config, link, query, limits, metrics, logger, stack });
  const conditions = new ReportedConditions();
  link.opened.then(() => conditions.listen(link.nats().connection)).catch(() => {}); // the next gateway tries again
  const readiness = readinessOfGateway(link, query, conditions);

  const authenticate = limitedAuthenticator(authenticator(config, link, logger, stack), limits.refusalsPerMinute);
  const health = { readiness, warnings: () => conditions.now.warnings };
  const listeners = stack.use(
    new Listeners({ config, apis, authenticate, certificate, limits, metrics, registry, health }),
  );
  const addresses = await listeners.start();

  const closing = new AbortController();
  stack.defer(() => closing.abort());
  void reportHealth(listeners, readiness, closing.signal);
  await Promise.race([link.opened, link.failed, delay(startMs, closing.signal)]);

  const owned = stack.move();
  return { addresses, failed: link.failed, [Symbol.asyncDispose]: () => owned.disposeAsync() };
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

function readinessOfGateway(
  link: LogLink,
  query: QueryClient,
  conditions: ReportedConditions,
): () => Promise<Readiness> {
  let failure: Error | undefined;
  link.failed.catch((error: Error) => {
    failure = error;
  });
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
  return () => readinessOf(checks);
}

async function reportHealth(
  listeners: Listeners,
  readiness: () => Promise<Readiness>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    listeners.setServing((await readiness()).ready);
    await delay(healthMs, signal);
  }
}
