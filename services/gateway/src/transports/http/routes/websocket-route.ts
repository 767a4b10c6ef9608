import type { FastifyInstance, FastifyRequest } from "fastify";
import type { WebSocket } from "ws";
import { liveness } from "../../liveness.ts";
import { subprotocol } from "../../websocket/protocol.ts";
import { serveSocket } from "../../websocket/websocket.ts";
import { releaseRequest } from "../call-context.ts";
import type { ApiRouteDeps } from "./api-call.ts";
import { routes } from "./openapi-routes.ts";

/** GET /api/v1/ws: a WebSocket, or 426 for a request that is none. */
export function webSocketRoute(app: FastifyInstance, deps: ApiRouteDeps): void {
  app.route({
    method: "GET",
    url: routes.ws.path,
    wsHandler: (socket, request) => {
      if (isSpoken(request)) serve(deps, socket, request);
      else socket.close(1002, `this server speaks ${subprotocol}`);
    },
    handler: async (_request, reply) => {
      reply.header("upgrade", "websocket").code(426);
      const message = `this is a WebSocket: connect with the subprotocol ${subprotocol}`;
      return reply.send({ error: { code: "invalid_argument", message } });
    },
  });
}

/** The client offers our subprotocol, or none. */
function isSpoken({ headers }: FastifyRequest): boolean {
  const offered = headers["sec-websocket-protocol"];
  return offered === undefined || offered.split(",").some((name) => name.trim() === subprotocol);
}

function serve({ api, caller, watch, limits }: ApiRouteDeps, socket: WebSocket, request: FastifyRequest): void {
  const counted = { caller: caller(request), peer: request.ip };
  const tcp = request.raw.socket;
  releaseRequest(request, socket);
  serveSocket(socket, {
    api,
    caller: counted.caller,
    watch,
    tcp,
    limits: { ...liveness, unreadBytes: limits.unreadBytes, subscriptions: limits.webSocket.subscriptions },
    usage: {
      open: (over) => limits.live.take(counted, over),
      message: () => limits.requests.take(counted),
    },
  });
}
