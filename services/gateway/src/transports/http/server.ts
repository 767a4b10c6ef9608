import type { AddressInfo } from "node:net";
import fastifyWebsocket from "@fastify/websocket";
import { listenError } from "@tapedeck/shared/service/health";
import fastify, { type FastifyInstance } from "fastify";
import { closedSignal } from "./call-context.ts";
import { type AllowedNames, refusalOf } from "./host-origin.ts";
import { notFound } from "./skaffold-errors.ts";

export type HttpServerOptions = {
  readonly allowed: AllowedNames;
  /** Largest request body in bytes (Skaffold's: 4 MiB). */
  readonly bodyLimit: number;
  /** Largest WebSocket message of a client in bytes. */
  readonly maxMessage: number;
  /** Told of every request but those of operators; the signal is over with the answer. */
  readonly seen: (api: string, signal: AbortSignal) => void;
  readonly onInternal: (error: unknown) => void;
};

/** The HTTP server with what holds for every path: who may come in, how bodies are read, how errors look. */
export async function httpServer(options: HttpServerOptions): Promise<FastifyInstance> {
  const { allowed, bodyLimit, maxMessage, seen, onInternal } = options;
  const app = fastify({ bodyLimit, forceCloseConnections: true, exposeHeadRoutes: false, return503OnClosing: false });
  await app.register(fastifyWebsocket, { options: { maxPayload: maxMessage, perMessageDeflate: false } });

  // Bodies are JSON whatever the content type says (`curl -d` sends x-www-form-urlencoded).
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => done(null, body));

  app.addHook("onRequest", async (request, reply) => {
    const refusal = refusalOf(request.headers, allowed);
    if (refusal === undefined) {
      const path = request.url.split("?")[0] ?? "";
      if (!operators.has(path)) seen(isOurs(path) ? "api" : "skaffold http", closedSignal(reply));
      return;
    }
    if (isOurs(request.url)) await reply.code(403).send({ error: { code: "forbidden", message: refusal } });
    else await reply.code(403).send({ code: 7, message: refusal, details: [] });
  });
  app.setNotFoundHandler((request, reply) => {
    if (!isOurs(request.url)) return notFound(reply);
    const message = `there is nothing at ${request.method} ${request.url.split("?")[0]}`;
    return reply.code(404).send({ error: { code: "not_found", message } });
  });
  app.setErrorHandler((error: { statusCode?: number; code?: string; message: string }, request, reply) => {
    const tooLarge = error.code === "FST_ERR_CTP_BODY_TOO_LARGE";
    const status = tooLarge ? 429 : (error.statusCode ?? 500);
    const message = tooLarge
      ? `grpc: received message larger than max (${request.headers["content-length"]} vs. ${bodyLimit})`
      : status < 500
        ? error.message
        : "internal error";
    if (status >= 500) onInternal(error);
    if (isOurs(request.url)) {
      const code = tooLarge ? "limit_exceeded" : status < 500 ? "invalid_argument" : "internal";
      return reply.code(status).send({ error: { code, message } });
    }
    return reply.code(status).send({ code: tooLarge ? 8 : status < 500 ? 3 : 13, message, details: [] });
  });
  return app;
}

const operators: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/metrics"]);

/** Listens; a taken port is one sentence. Gives "host:port". */
export async function listenHttp(app: FastifyInstance, host: string, port: number): Promise<string> {
  try {
    await app.listen({ host, port });
  } catch (cause) {
    throw listenError(cause as NodeJS.ErrnoException, host, port);
  }
  return `${host}:${(app.server.address() as AddressInfo).port}`;
}

/** Our own paths have our own errors; every other path is Skaffold's. */
function isOurs(url: string): boolean {
  return url === "/api" || url.startsWith("/api/");
}
