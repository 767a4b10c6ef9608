import type { Readiness } from "@tapedeck/shared/service/health";
import type { Registry } from "@tapedeck/shared/service/metrics";
import type { FastifyInstance } from "fastify";
import { notFound, sendSkaffold } from "../skaffold-errors.ts";
import { welcomePage } from "./welcome-page.ts";

export type Operations = {
  readonly readiness: () => Promise<Readiness>;
  /** What people should know though all is there; told in the details of /readyz. */
  readonly warnings?: () => readonly string[];
  readonly metrics: Registry;
  /** Where gRPC listens, for the page at `/`. */
  readonly grpc: string;
  /** Nobody gets in without a token; what is wrong inside is then for the service's log. */
  readonly needsToken?: boolean;
};

/**
 * What operators ask: /healthz, /readyz (503 with reasons), /metrics; and `/` for who opens it in a browser. Of these only
 * /metrics needs a token where others do, as it tells how much goes on here; /readyz then gives no reasons.
 */
export function operationsRoutes(
  app: FastifyInstance,
  { readiness, warnings = () => [], metrics, grpc, needsToken = false }: Operations,
): void {
  const open = { config: { access: "everyone" } } as const;
  app.get("/healthz", open, async () => ({ status: "ok" }));
  app.get("/readyz", open, async (_request, reply) => {
    const { ready, checks } = await readiness();
    const known = warnings();
    const told = needsToken ? Object.entries(checks).map(([name, is]) => [name, is === "ok" ? is : "away"]) : [];
    const reasons = { checks, ...(known.length > 0 && { details: { warnings: known } }) };
    return reply
      .code(ready ? 200 : 503)
      .send({ ready, ...(needsToken ? { checks: Object.fromEntries(told) } : reasons) });
  });
  app.get("/metrics", async (_request, reply) => reply.type(metrics.contentType).send(await metrics.metrics()));
  app.get("/", open, (request, reply) => {
    // Skaffold has nothing here, and its clients may know that.
    if (!(request.headers.accept ?? "").includes("text/html")) {
      return sendSkaffold(reply, notFound.status, notFound.body);
    }
    return reply
      .type("text/html; charset=utf-8")
      .header("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
      .send(welcomePage(`${request.protocol}://${request.host}`, grpc, { needsToken }));
  });
}
