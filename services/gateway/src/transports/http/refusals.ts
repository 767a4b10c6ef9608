import { type ErrorCode, httpStatusOf, TapedeckError, toErrorBody } from "@tapedeck/shared/errors/errors";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { UpstreamError } from "../../apis/upstream-error.ts";
import type { ApiName, CallWatch } from "../../metrics.ts";
import { isEventSource, sendRetryLater } from "./event-source.ts";
import { apiOf, isOurs, pathOf } from "./paths.ts";
import { notFound, sendSkaffold, skaffoldError, skaffoldErrorOf } from "./skaffold-errors.ts";

export type RefusalOptions = {
  readonly watch: (api: ApiName) => CallWatch;
  /** The largest body, which an error names. */
  readonly bodyBytes: number;
};

/** Errors of fastify and its plugins. */
type RouteError = { readonly statusCode?: number; readonly code?: string; readonly message: string };

/** Answers requests for unknown paths, and errors that no route has answered, in the form of the path's API. */
export function answerRefusals(app: FastifyInstance, { watch, bodyBytes }: RefusalOptions): void {
  app.setNotFoundHandler({ preHandler: app.rateLimit() }, (request, reply) => {
    if (!isOurs(pathOf(request))) return sendSkaffold(reply, notFound.status, notFound.body);
    return sendOurs(reply, "not_found", `there is nothing at ${request.method} ${pathOf(request)}`);
  });
  app.setErrorHandler((error: RouteError, request, reply) => {
    if (error instanceof TapedeckError) {
      return sendRefusal(request, reply, watch(apiOf(request)).failed(error));
    }
    if (error.code === "FST_ERR_CTP_BODY_TOO_LARGE") return sendTooLarge(request, reply, bodyBytes);
    const status = error.statusCode ?? 500;
    if (status >= 500) watch(apiOf(request)).failed(error);
    const message = status < 500 ? error.message : "internal error";
    if (isOurs(pathOf(request)))
      return sendOurs(reply, status < 500 ? "invalid_argument" : "internal", message, status);
    return sendSkaffold(reply, status, skaffoldError(status < 500 ? 3 : 13, message).body);
  });
}

function sendTooLarge(request: FastifyRequest, reply: FastifyReply, max: number): FastifyReply {
  const size = request.headers["content-length"] ?? "more";
  const message = `grpc: received message larger than max (${size} vs. ${max})`;
  if (isOurs(pathOf(request))) return sendOurs(reply, "limit_exceeded", message);
  return sendSkaffold(reply, 429, skaffoldError(8, message).body);
}

/** Answers an error in the form of the path's API. */
export function sendRefusal(
  request: FastifyRequest,
  reply: FastifyReply,
  error: TapedeckError | UpstreamError,
): FastifyReply {
  if (error instanceof TapedeckError) {
    if (error.code === "unauthenticated") reply.header("www-authenticate", "Bearer");
    if (error.retryAfter !== undefined) {
      if (isEventSource(request)) return sendRetryLater(reply, error, error.retryAfter);
      reply.header("retry-after", error.retryAfter);
    }
    if (isOurs(pathOf(request))) return reply.code(httpStatusOf(error.code)).send({ error: toErrorBody(error) });
  }
  const { status, body } = skaffoldErrorOf(error);
  return sendSkaffold(reply, status, body);
}

/** Answers 403 in the form of the path's API. */
export async function sendForbidden(request: FastifyRequest, reply: FastifyReply, message: string): Promise<void> {
  if (isOurs(pathOf(request))) await sendOurs(reply, "forbidden", message);
  else await sendSkaffold(reply, 403, skaffoldError(7, message).body);
}

function sendOurs(reply: FastifyReply, code: ErrorCode, message: string, status = httpStatusOf(code)): FastifyReply {
  return reply.code(status).send({ error: { code, message } });
}
