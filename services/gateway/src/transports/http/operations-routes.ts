import type { Readiness } from "@tapedeck/shared/service/health";
import type { Registry } from "@tapedeck/shared/service/metrics";
import type { FastifyInstance } from "fastify";

/** What operators ask: /healthz, /readyz (503 with reasons), /metrics. */
export function operationsRoutes(app: FastifyInstance, readiness: () => Promise<Readiness>, metrics: Registry): void {
  app.get("/healthz", async () => ({ status: "ok" }));
  app.get("/readyz", async (_request, reply) => {
    const answer = await readiness();
    return reply.code(answer.ready ? 200 : 503).send(answer);
  });
  app.get("/metrics", async (_request, reply) => reply.type(metrics.contentType).send(await metrics.metrics()));
}
