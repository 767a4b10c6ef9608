import { UpstreamError } from "../upstream-error.ts";

const invalidArgument = 3;
const internal = 13;

/** A body that Skaffold's HTTP server refuses with 400, code 3 and this message. */
export class BadBodyError extends Error {
  override name = "BadBodyError";
}

export function refusedBody({ message }: BadBodyError): UpstreamError {
  return new UpstreamError(invalidArgument, message);
}

/** Go's gRPC library words it like this. */
export function unreadableRequest(cause: unknown): UpstreamError {
  const why = cause instanceof Error ? cause.message : cause;
  return new UpstreamError(internal, `grpc: error unmarshalling request: ${why}`);
}
