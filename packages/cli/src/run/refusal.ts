import { status } from "@grpc/grpc-js";

type GrpcError = { readonly code?: unknown; readonly details?: unknown; readonly cause?: unknown };

/**
 * What the recorder said when it did not take a push, from what pushing logs. Undefined for gRPC's own trouble
 * ("ECONNREFUSED …"), which says nothing that a user could act on.
 */
export function refusalIn(fields: object): string | undefined {
  for (let error = (fields as { err?: unknown }).err; error instanceof Error; error = error.cause) {
    const { code, details } = error as GrpcError;
    if (typeof code === "number" && code !== status.UNAVAILABLE && typeof details === "string") return details;
  }
  return undefined;
}
