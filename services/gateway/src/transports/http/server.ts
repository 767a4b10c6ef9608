import type { AddressInfo } from "node:net";
import { Server as TlsServer } from "node:tls";
import fastifyWebsocket from "@fastify/websocket";
import { type ErrorCode, httpStatusOf, TapedeckError, toErrorBody } from "@tapedeck/shared/errors/errors";
import { listenError } from "@tapedeck/shared/service/health";
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import type { UpstreamError } from "../../apis/upstream-error.ts";
import type { Authenticator } from "../../auth/authenticator.ts";
import type { CallerLimits } from "../../limits/limits.ts";
import type { CallWatch, Door } from "../../metrics.ts";
import { type Address, addressText } from "../address.ts";
import type { Certificate } from "../tls.ts";
import { closeCodes, subprotocol } from "../websocket/protocol.ts";
import { letIn } from "./authentication.ts";
import { answerBadRequest } from "./bad-requests.ts";
import { closedSignal } from "./call-context.ts";
import { compressAnswers } from "./compression.ts";
import { corsHeaders, isPreflight, refusedCorsHeaders } from "./cors.ts";
import { isEventSource, sendComeAgain } from "./event-source.ts";
import { type AllowedNames, isOfOtherPage, type Refusal, refusalOf } from "./host-origin.ts";
import { limitRequests } from "./request-limits.ts";
import { notFound, sendSkaffold, skaffoldError, skaffoldErrorOf } from "./skaffold-errors.ts";

export type HttpServerOptions = {
  readonly allowed: AllowedNames;
  readonly authenticate: Authenticator;
  readonly watch: (door: Door) => CallWatch;
  /** Undefined: without TLS. */
  readonly certificate?: Certificate | undefined;
  readonly limits: Pick<CallerLimits, "http" | "webSocket" | "arrivalMs" | "requests">;
};

/**
 * TCP asks a quiet peer after this time and gives it up 10 s later. Before the next comment of an event stream: with
 * data under way the system would go on trying for a quarter of an hour.
 */
const keepAliveAfterMs = 4_000;

/** How often it is looked for requests that take too long to arrive, at the least. */
const lateCheckMs = 30_000;

/** The HTTP server with what holds for every path: who may come in, how bodies are read, how errors look. */
export async function httpServer(options: HttpServerOptions): Promise<FastifyInstance> {
  const { allowed, authenticate, watch, certificate, limits } = options;
  const connections = {
    keepAlive: true,
    keepAliveInitialDelay: keepAliveAfterMs,
    maxHeaderSize: limits.http.headerBytes,
    headersTimeout: limits.arrivalMs,
    requestTimeout: limits.arrivalMs,
    connectionsCheckingInterval: Math.min(lateCheckMs, limits.arrivalMs),
  };
  const app = fastify({
    bodyLimit: limits.http.bodyBytes,
    requestTimeout: limits.arrivalMs,
    clientErrorHandler: answerBadRequest,
    forceCloseConnections: true,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    ...(certificate === undefined ? { http: connections } : { https: { ...connections, ...certificate.current() } }),
  });
  certificate?.renewed((tls) => {
    if (app.server instanceof TlsServer) app.server.setSecureContext(tls);
  });
  app.server.maxConnections = limits.http.connections;
  await app.register(fastifyWebsocket, {
    options: {
      maxPayload: limits.webSocket.messageBytes,
      perMessageDeflate: false,
      handleProtocols: (offered: ReadonlySet<string>) => (offered.has(subprotocol) ? subprotocol : false),
    },
    // The gateway is going away: clients resume elsewhere, or when it is back.
    preClose(done) {
      for (const client of app.websocketServer.clients) client.close(closeCodes.goingAway, "the gateway is going away");
      app.websocketServer.close();
      done();
    },
  });

  await compressAnswers(app);

  // Bodies are JSON whatever the content type says (`curl -d` sends x-www-form-urlencoded).
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => done(null, body));

  app.addHook("onRequest", async (request, reply) => {
    const path = pathOf(request);
    const door = isOurs(path) ? "api" : "skaffold http";
    const isTls = certificate !== undefined;
    const refusal = refusalOf(request.headers, allowed, { isTls });
    if (refusal !== undefined) return refuse(request, reply, refusal);
    if (!operators.has(path)) watch(door).seen(closedSignal(reply));
    reply.headers(corsHeaders(request.headers));
    if (isPreflight(request)) return reply.code(204).send();
    try {
      await letIn(request, { authenticate, isOfOtherPage: isOfOtherPage(request.headers, isTls) });
    } catch (error) {
      return sendRefusal(request, reply, watch(door).failed(error));
    }
  });
  await limitRequests(app, limits.requests);
  app.setNotFoundHandler({ preHandler: app.rateLimit() }, (request, reply) => {
    if (!isOurs(pathOf(request))) return sendSkaffold(reply, notFound.status, notFound.body);
    return sendOurs(reply, "not_found", `there is nothing at ${request.method} ${pathOf(request)}`);
  });
  app.setErrorHandler((error: { statusCode?: number; code?: string; message: string }, request, reply) => {
    const ours = isOurs(pathOf(request));
    if (error instanceof TapedeckError) {
      return sendRefusal(request, reply, watch(ours ? "api" : "skaffold http").failed(error));
    }
    if (error.code === "FST_ERR_CTP_BODY_TOO_LARGE") {
      const size = request.headers["content-length"] ?? "more";
      const message = `grpc: received message larger than max (${size} vs. ${limits.http.bodyBytes})`;
      if (ours) return sendOurs(reply, "limit_exceeded", message);
      return sendSkaffold(reply, 429, skaffoldError(8, message).body);
    }
    const status = error.statusCode ?? 500;
    if (status >= 500) watch(ours ? "api" : "skaffold http").failed(error);
    const message = status < 500 ? error.message : "internal error";
    if (ours) return sendOurs(reply, status < 500 ? "invalid_argument" : "internal", message, status);
    return sendSkaffold(reply, status, skaffoldError(status < 500 ? 3 : 13, message).body);
  });
  return app;
}

/** In the words of the path that was asked for. */
function sendRefusal(request: FastifyRequest, reply: FastifyReply, error: TapedeckError | UpstreamError): FastifyReply {
  if (error instanceof TapedeckError) {
    if (error.code === "unauthenticated") reply.header("www-authenticate", "Bearer");
    if (error.retryAfter !== undefined) {
      if (isEventSource(request)) return sendComeAgain(reply, error, error.retryAfter);
      reply.header("retry-after", error.retryAfter);
    }
    if (isOurs(pathOf(request))) return reply.code(httpStatusOf(error.code)).send({ error: toErrorBody(error) });
  }
  const { status, body } = skaffoldErrorOf(error);
  return sendSkaffold(reply, status, body);
}

async function refuse(request: FastifyRequest, reply: FastifyReply, { message, ofOrigin }: Refusal): Promise<void> {
  if (ofOrigin) {
    reply.headers(refusedCorsHeaders(request.headers));
    if (isPreflight(request)) return void (await reply.code(204).send());
  }
  if (isOurs(pathOf(request))) await sendOurs(reply, "forbidden", message);
  else await sendSkaffold(reply, 403, skaffoldError(7, message).body);
}

const operators: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/metrics"]);

/**
 * Listens, and gives "host:port".
 * @throws Error one sentence when the port is taken
 */
export async function listenHttp(app: FastifyInstance, { host, port }: Address): Promise<string> {
  try {
    await app.listen({ host, port });
  } catch (cause) {
    throw listenError(cause as NodeJS.ErrnoException, host, port);
  }
  return addressText({ host, port: (app.server.address() as AddressInfo).port });
}

function pathOf({ url }: FastifyRequest): string {
  return url.split("?")[0] ?? "";
}

/** Our own paths have our own errors; every other path is Skaffold's. */
function isOurs(path: string): boolean {
  return path === "/api" || path.startsWith("/api/");
}

function sendOurs(reply: FastifyReply, code: ErrorCode, message: string, status = httpStatusOf(code)): FastifyReply {
  return reply.code(status).send({ error: { code, message } });
}
