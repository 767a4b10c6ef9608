import { Metadata, type StatusObject } from "@grpc/grpc-js";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { toGrpcStatus } from "@tapedeck/shared/errors/grpc";
import { UpstreamError } from "../../apis/upstream-error.ts";

/** What went wrong: causes of `internal` go to the service's log and nowhere else. */
export type OnInternal = (error: unknown) => void;

/** An error as a gRPC status: an upstream's own as it is, Tapedeck's by the one table. */
export function toStatus(error: unknown, onInternal?: OnInternal): StatusObject {
  if (error instanceof UpstreamError) return { code: error.code, details: error.message, metadata: new Metadata() };
  if (!(error instanceof TapedeckError) || error.code === "internal") onInternal?.(error);
  return toGrpcStatus(error);
}
