import { invalidArgument } from "@tapedeck/shared/errors/errors";
import type { FastifyInstance, FastifyReply } from "fastify";
import type { z } from "zod";
import { comparisonJson } from "../../../apis/tapedeck/compare/comparison-json.ts";
import { listsJson } from "../../../apis/tapedeck/lists.ts";
import { type RawParameters, readParameters } from "../../../apis/tapedeck/parameters.ts";
import { statsNames } from "../../../apis/tapedeck/schemas/stats.ts";
import type { TapedeckApi } from "../../../apis/tapedeck/tapedeck-api.ts";
import { boundTo } from "../../../call-context.ts";
import { closedSignal, contextOf, type HttpCaller } from "../call-context.ts";
import { ownError, sendError } from "../error-answers.ts";
import { type ApiCall, type ApiRouteDeps, sendBody, sendPage } from "./api-call.ts";
import { answerEvents, answerStream } from "./events-routes.ts";
import { type DescribedRoute, routes, statsRoute } from "./openapi-routes.ts";
import { webSocketRoute } from "./websocket-route.ts";

export type ApiRouteOptions = Omit<ApiRouteDeps, "api" | "caller">;

/** Tapedeck's own API under /api/v1 (docs/api.md), as openapi-routes.ts describes it. */
export function apiRoutes(app: FastifyInstance, api: TapedeckApi, caller: HttpCaller, options: ApiRouteOptions): void {
  const { bound, watch } = options;
  const deps: ApiRouteDeps = { api, caller, ...options };
  getRoute(app, deps, routes.state, async ({ reply, context }) => {
    const state = await api.state(context);
    const { position, session, sessionEnded, notHeardSince, heardAt } = state;
    const head = {
      position,
      sessionEnded,
      heardAt,
      ...(session !== null && { session }),
      ...(notHeardSince !== null && { notHeardSince }),
    };
    return sendBody(watch, reply, { body: state, head });
  });
  getRoute(app, deps, routes.events, (call) => answerEvents(deps, call));
  getRoute(app, deps, routes.stream, (call) => answerStream(deps, call));
  if (bound !== undefined) return;

  listRoutes(app, deps);
  getRoute(app, deps, routes.compare, async ({ reply, context, parameters: { left, right } }) => {
    const body = comparisonJson(await api.compare(context, { left, right, at: context.at }));
    return sendBody(watch, reply, { body, head: { position: body.position } });
  });
  getRoute(app, deps, routes.status, async ({ reply, context }) => {
    const status = await api.status(context);
    return sendBody(watch, reply, { body: status, head: { position: status.position } });
  });
  webSocketRoute(app, deps);
  refuseOtherMethods(app, deps, routes.ws.path, ["GET"]);
}

/** The paged lists and statistics. */
function listRoutes(app: FastifyInstance, deps: ApiRouteDeps): void {
  const { watch } = deps;
  const lists = listsJson(deps.api.lists);
  getRoute(app, deps, routes.search, async ({ reply, context, parameters }) =>
    sendPage(watch, reply, await lists.search(context, parameters)),
  );
  for (const name of ["sources", "sessions", "operations"] as const)
    getRoute(app, deps, routes[name], async ({ reply, context, parameters }) =>
      sendPage(watch, reply, await lists[name](context, parameters)),
    );
  for (const name of statsNames)
    getRoute(app, deps, statsRoute(name), async ({ reply, context, parameters }) =>
      sendPage(watch, reply, await deps.api.stats(context, name, parameters)),
    );
}

/** Serves GET and HEAD of a described route, with its parameters checked, and refuses all other methods. */
function getRoute<Parameters extends z.ZodObject>(
  app: FastifyInstance,
  deps: ApiRouteDeps,
  route: DescribedRoute & { readonly parameters: Parameters },
  answer: (call: ApiCall<z.infer<Parameters>>) => Promise<FastifyReply>,
): void {
  const { bound, caller, watch } = deps;
  const allowed = ["GET", "HEAD"];
  app.route({
    method: allowed,
    url: route.path,
    config: { readsQuery: true },
    handler: async (request, reply) => {
      try {
        const context = boundTo(bound, contextOf(request, caller(request), closedSignal(reply)));
        const parameters = readParameters(route.parameters, request.query as RawParameters);
        return await answer({ request, reply, context, parameters });
      } catch (error) {
        return sendError(reply, ownError(watch, error));
      }
    },
  });
  refuseOtherMethods(app, deps, route.path, allowed);
}

const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

function refuseOtherMethods(
  app: FastifyInstance,
  { watch }: ApiRouteDeps,
  url: string,
  allowed: readonly string[],
): void {
  app.route({
    method: methods.filter((method) => !allowed.includes(method)),
    url,
    config: { readsQuery: true },
    handler: async ({ method }, reply) => {
      const error = invalidArgument(`${url} does not support ${method}: use GET`);
      return sendError(reply.header("allow", allowed.join(", ")), ownError(watch, error), 405);
    },
  });
}
