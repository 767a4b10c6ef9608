import { grpcStatusOf, httpStatusOf, type TapedeckError, toErrorInfo } from "@tapedeck/shared/errors/errors";
import type { FastifyReply } from "fastify";
import { UpstreamError } from "../../apis/upstream-error.ts";

/** A body as Skaffold's HTTP server writes it (docs/upstreams/skaffold.md#http-errors). */
export type SkaffoldErrorBody = {
  readonly code: number;
  readonly message: string;
  readonly details: readonly object[];
};

export type SkaffoldError = { readonly status: number; readonly body: SkaffoldErrorBody };

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

export const notFound: SkaffoldError = skaffoldError(5, "Not Found");
export const methodNotAllowed: SkaffoldError = skaffoldError(12, "Method Not Allowed");

/** An error in Skaffold's form. The status follows from the code unless it is given. */
export function skaffoldError(code: number, message: string, status = statusByCode[code] ?? 500): SkaffoldError {
  return { status, body: { code, message, details: [] } };
}

/** Skaffold's own errors stay as they are; Tapedeck's have their own status and the ErrorInfo in `details`. */
export function skaffoldErrorOf(error: TapedeckError | UpstreamError): SkaffoldError {
  if (error instanceof UpstreamError) return skaffoldError(error.code, error.message);
  const details = [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", ...toErrorInfo(error) }];
  return {
    status: httpStatusOf(error.code),
    body: { code: grpcStatusOf(error.code), message: error.message, details },
  };
}

/** Sends bytes, because fastify would add a charset to the content type of text. */
export function sendSkaffold(reply: FastifyReply, status: number, body: object): FastifyReply {
  return reply.code(status).header("content-type", "application/json").send(jsonBytes(body));
}

export function jsonBytes(body: object): Buffer {
  return Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
}
