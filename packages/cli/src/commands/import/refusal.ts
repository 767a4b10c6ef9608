import { status } from "@grpc/grpc-js";

type GrpcError = { readonly code?: unknown; readonly details?: unknown; readonly cause?: unknown };

/** Nobody answers, or it stopped in the middle. */
const transportFailures: ReadonlySet<unknown> = new Set([status.UNAVAILABLE, status.CANCELLED]);

/**
 * The recorder's reason for refusing a push, from what pushing logs. Undefined for gRPC's own errors ("ECONNREFUSED …",
 * "Call cancelled"), on which a user cannot act.
 */
export function refusalIn(fields: object): string | undefined {
  for (let error = (fields as { err?: unknown }).err; error instanceof Error; error = error.cause) {
    const { code, details } = error as GrpcError;
    if (typeof code === "number" && !transportFailures.has(code) && typeof details === "string") return details;
  }
  return undefined;
}
