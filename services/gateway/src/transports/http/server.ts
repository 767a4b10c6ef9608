import type { AddressInfo } from "node:net";
import { Server as TlsServer } from "node:tls";
import fastifyWebsocket from "@fastify/websocket";
import { listenError } from "@tapedeck/shared/service/health";
import type { Certificate } from "@tapedeck/shared/service/tls/certificate";
import fastify, { type FastifyInstance } from "fastify";
import type { CallerLimits } from "../../limits/limits.ts";
import { type Address, addressText } from "../address.ts";
import { closeCodes, subprotocol } from "../websocket/protocol.ts";
import { type AdmissionOptions, admitRequests } from "./admission.ts";
import { answerBadRequest } from "./bad-requests.ts";
import { compressAnswers } from "./compression.ts";
import { answerRefusals } from "./refusals.ts";
import { limitRequests } from "./request-limits.ts";

export type HttpServerOptions = Omit<AdmissionOptions, "isTls"> & {
  /** Undefined: without TLS. */
  readonly certificate?: Certificate | undefined;
  readonly limits: HttpLimits;
};

type HttpLimits = Pick<CallerLimits, "http" | "webSocket" | "arrivalMs" | "requests">;

/**
 * TCP probes a quiet peer after this time and gives it up 10 s later. The time is shorter than the interval between
 * comments of an event stream: with data under way, the system would keep trying for a quarter of an hour.
 */
const keepAliveAfterMs = 4_000;

/** The longest interval between two checks for requests that take too long to arrive. */
const lateCheckMs = 30_000;

/** The HTTP server with what holds for every path: who may call, how bodies are read, what errors look like. */
export async function httpServer(options: HttpServerOptions): Promise<FastifyInstance> {
  const { certificate, limits, ...admission } = options;
  const app = listener(certificate, limits);
  await acceptWebSockets(app, limits);
  await compressAnswers(app);

  // Bodies are JSON whatever their content type (`curl -d` sends x-www-form-urlencoded).
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => done(null, body));

  admitRequests(app, { ...admission, isTls: certificate !== undefined });
  await limitRequests(app, limits.requests);
  answerRefusals(app, { watch: admission.watch, bodyBytes: limits.http.bodyBytes });
  return app;
}

function listener(certificate: Certificate | undefined, limits: HttpLimits): FastifyInstance {
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
  return app;
}

async function acceptWebSockets(app: FastifyInstance, { webSocket }: HttpLimits): Promise<void> {
  await app.register(fastifyWebsocket, {
    options: {
      maxPayload: webSocket.messageBytes,
      perMessageDeflate: false,
      handleProtocols: (offered: ReadonlySet<string>) => (offered.has(subprotocol) ? subprotocol : false),
    },
    // The close code makes clients resume elsewhere, or when the gateway is back.
    preClose(done) {
      for (const client of app.websocketServer.clients)
        client.close(closeCodes.goingAway, "the gateway is shutting down");
      app.websocketServer.close();
      done();
    },
  });
}

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
