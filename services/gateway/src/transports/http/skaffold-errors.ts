import {
  fromUnknown,
  grpcStatusOf,
  httpStatusOf,
  type TapedeckError,
  toErrorInfo,
} from "@tapedeck/shared/errors/errors";
import type { FastifyReply, FastifyRequest } from "fastify";
import { UpstreamError } from "../../apis/upstream-error.ts";

export type SkaffoldErrorBody = {
  readonly code: number;
  readonly message: string;
  readonly details: readonly unknown[];
};

/** HTTP status by gRPC code, as grpc-gateway maps them. */
const statusByCode: Readonly<Record<number, number>> = {
  1: 499,
  2: 500,
  3: 400,
  4: 504,
  5: 404,
  6: 409,
  7: 403,
  8: 429,
  9: 400,
  10: 409,
  11: 400,
  12: 501,
  13: 500,
  14: 503,
  15: 500,
  16: 401,
};

/**
 * An error in Skaffold's body (FACTS 2.2): its own as they are; Tapedeck's with their own status and the ErrorInfo
 * in `details`.
 */
export function skaffoldErrorBody(
  error: unknown,
  onInternal: (error: unknown) => void,
): { readonly status: number; readonly body: SkaffoldErrorBody } {
  if (error instanceof UpstreamError) {
    const status = statusByCode[error.code] ?? 500;
    return { status, body: { code: error.code, message: error.message, details: [] } };
  }
  const own: TapedeckError = fromUnknown(error);
  if (own.code === "internal") onInternal(error);
  const details = [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", ...toErrorInfo(own) }];
  return { status: httpStatusOf(own.code), body: { code: grpcStatusOf(own.code), message: own.message, details } };
}

export function methodNotAllowed(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  reply.code(501).type("application/json");
  const body = { code: 12, message: "Method Not Allowed", details: [] };
  return request.method === "HEAD" ? reply.send() : reply.send(body);
}

export function notFound(reply: FastifyReply): FastifyReply {
  return reply.code(404).type("application/json").send({ code: 5, message: "Not Found", details: [] });
}
