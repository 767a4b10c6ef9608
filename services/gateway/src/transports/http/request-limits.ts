import rateLimit from "@fastify/rate-limit";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { RequestBudget } from "../../limits/requests.ts";
import { callerOf } from "./authentication.ts";

/**
 * Counts the requests of each caller to routes that are added after this; for a WebSocket, before the upgrade. Answers
 * report the caller's budget in RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset. Routes that are open to everyone
 * (health, the page) are not counted.
 */
export async function limitRequests(app: FastifyInstance, budget: RequestBudget): Promise<void> {
  /** Makes the plugin count where all transports count. */
  class Store implements rateLimit.FastifyRateLimitStore {
    incr(key: string, done: Parameters<rateLimit.FastifyRateLimitStore["incr"]>[1]): void {
      budget.count(key).then(({ used, leftMs }) => done(null, { current: used, ttl: leftMs }), done);
    }
    child(): Store {
      return this;
    }
  }
  await app.register(rateLimit, {
    enableDraftSpec: true,
    max: budget.perSecond,
    timeWindow: 1_000,
    store: Store,
    keyGenerator: (request) => keyOf(request, budget) ?? "",
    allowList: (_request, key) => key === "",
    errorResponseBuilder: (_request, { ttl }) => budget.refusal({ leftMs: ttl }),
  });
}

function keyOf(request: FastifyRequest, budget: RequestBudget): string | undefined {
  if (request.routeOptions.config.access === "everyone") return undefined;
  return budget.keyOf({ caller: callerOf(request), peer: request.ip });
}
