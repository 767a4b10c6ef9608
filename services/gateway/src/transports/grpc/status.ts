import { Metadata, type StatusObject } from "@grpc/grpc-js";
import type { TapedeckError } from "@tapedeck/shared/errors/errors";
import { toGrpcStatus } from "@tapedeck/shared/errors/grpc";
import { UpstreamError } from "../../apis/upstream-error.ts";

/** An error as a gRPC status: an upstream's own error as it is, Tapedeck's by the table of codes. */
export function toStatus(error: TapedeckError | UpstreamError): StatusObject {
  if (error instanceof UpstreamError) return { code: error.code, details: error.message, metadata: new Metadata() };
  return toGrpcStatus(error);
}
