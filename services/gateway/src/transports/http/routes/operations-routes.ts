import type { Readiness } from "@tapedeck/shared/service/health";
import type { Registry } from "@tapedeck/shared/service/metrics";
import type { FastifyInstance } from "fastify";

export type Operations = {
  readonly readiness: () => Promise<Readiness>;
  /** Problems that do not stop the service, for the details of /readyz. */
  readonly warnings?: () => Promise<readonly string[]>;
  readonly metrics: Registry;
  /** Callers need a token, so the reasons for a failed check stay in the service's log. */
  readonly needsToken?: boolean;
};

/**
 * The operators' routes: /healthz, /readyz (503 with reasons), /metrics. With
 * authentication only /metrics needs a token, because it reveals how busy the service is; /readyz then gives no reasons.
 */
export function operationsRoutes(
  app: FastifyInstance,
  { readiness, warnings = async () => [], metrics, needsToken = false }: Operations,
): void {
  const open = { config: { access: "everyone" } } as const;
  app.get("/healthz", open, async () => ({ status: "ok" }));
  app.get("/readyz", open, async (_request, reply) => {
    const [{ ready, checks }, known] = await Promise.all([readiness(), needsToken ? [] : warnings()]);
    const bare = needsToken ? Object.entries(checks).map(([name, is]) => [name, is === "ok" ? is : "away"]) : [];
    const reasons = { checks, ...(known.length > 0 && { details: { warnings: known } }) };
    return reply
      .code(ready ? 200 : 503)
      .send({ ready, ...(needsToken ? { checks: Object.fromEntries(bare) } : reasons) });
  });
  app.get("/metrics", async (_request, reply) => reply.type(metrics.contentType).send(await metrics.metrics()));
}
