import { toGrpcStatus } from "@tapedeck/shared/errors/grpc";

/** The error as a client of the service would meet it: with a gRPC status `code`. */
export function toServiceError(cause: unknown): Error {
  const { code, details } = toGrpcStatus(cause);
  return Object.assign(new Error(details, { cause }), { code, details });
}
