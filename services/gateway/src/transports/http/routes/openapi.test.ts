import fastifyWebsocket from "@fastify/websocket";
import { createMetrics } from "@tapedeck/shared/service/metrics";
import fastify from "fastify";
import { expect, it } from "vitest";
import type { MaintainApi } from "../../../apis/maintain/maintain-api.ts";
import type { TapedeckApi } from "../../../apis/tapedeck/tapedeck-api.ts";
import type { AuditApi } from "../../../audit/audit-api.ts";
import { everyone } from "../../../auth/authenticator.ts";
import type { TokenApi } from "../../../auth/token-api.ts";
import { callerLimits } from "../../../limits/limits.ts";
import { defaultLimits } from "../../../limits/settings.ts";
import type { SinksApi } from "../../../sinks/sinks-api.ts";
import { callerOf } from "../authentication.ts";
import { apiRoutes } from "./api-routes.ts";
import { auditRoutes } from "./audit-routes.ts";
import { maintainRoutes } from "./maintain-routes.ts";
import { openApiDocument } from "./openapi.ts";
import { operationsRoutes } from "./operations-routes.ts";
import { sinkRoutes } from "./sink-routes.ts";
import { tokenRoutes } from "./token-routes.ts";

it("describes every path of ours, and no other", async () => {
  const app = fastify({ exposeHeadRoutes: false });
  await app.register(fastifyWebsocket);
  const served: string[] = [];
  app.addHook("onRoute", ({ method, url }) => {
    const path = url.replace(/:(\w+)/g, "{$1}");
    // HEAD goes with GET; a route for several methods refuses them.
    const [first = "", ...others] = [method].flat().filter((name) => name !== "HEAD");
    if (others.length === 0) served.push(`${first.toLowerCase()} ${path}`);
  });
  const watch = { seen: () => {}, sent: () => {}, failed: (error: unknown) => Promise.reject(error) as never };
  apiRoutes(app, {} as TapedeckApi, callerOf, { watch, limits: callerLimits(defaultLimits) });
  maintainRoutes(app, {} as MaintainApi, callerOf, { watch, limits: callerLimits(defaultLimits) });
  tokenRoutes(app, {} as TokenApi, callerOf, { authenticate: everyone("default"), watch });
  auditRoutes(app, {} as AuditApi, callerOf, { watch, limits: callerLimits(defaultLimits) });
  sinkRoutes(app, {} as SinksApi, callerOf, watch);
  operationsRoutes(app, {
    readiness: async () => ({ ready: true, checks: {} }),
    metrics: createMetrics("t"),
  });

  const { paths } = openApiDocument() as { paths: Record<string, Record<string, object>> };
  const described = Object.entries(paths).flatMap(([path, methods]) => Object.keys(methods).map((m) => `${m} ${path}`));
  // What is for programs of others, or people, is described in docs/api.md.
  const others = ["get /metrics", "get /"];
  expect(served.filter((route) => !others.includes(route)).sort()).toEqual(described.sort());
});
