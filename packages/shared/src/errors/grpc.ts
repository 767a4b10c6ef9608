import { Metadata, type ServiceError, type StatusObject } from "@grpc/grpc-js";
import { ErrorInfo } from "@tapedeck/proto/google/rpc/error_details";
import { Status } from "@tapedeck/proto/google/rpc/status";
import { fromUnknown, grpcStatusOf, isErrorCode, isLoss, TapedeckError, toErrorInfo } from "./errors.ts";

const trailer = "grpc-status-details-bin";
const infoType = "type.googleapis.com/google.rpc.ErrorInfo";

/** An error as a gRPC status, with google.rpc.ErrorInfo in its details. Unknown errors leak nothing. */
export function toGrpcStatus(error: unknown): StatusObject {
  const own = fromUnknown(error);
  const code = grpcStatusOf(own.code);
  const value = Buffer.from(
    ErrorInfo.encode({ ...toErrorInfo(own), metadata: { ...toErrorInfo(own).metadata } }).finish(),
  );
  const status = Status.encode({ code, message: own.message, details: [{ type_url: infoType, value }] }).finish();
  const metadata = new Metadata();
  metadata.set(trailer, Buffer.from(status));
  if (own.retryAfter !== undefined) metadata.set("retry-after", String(own.retryAfter));
  return { code, details: own.message, metadata };
}

/** The error that a Tapedeck service answered with; an unreachable service is `not_ready`. */
export function fromServiceError(error: unknown): TapedeckError {
  if (!isServiceError(error)) return fromUnknown(error);
  const info = infoOf(error);
  if (info !== undefined && isErrorCode(info.reason)) {
    const { field, earliest, latest, choices, loss } = info.metadata;
    const details = {
      ...(field !== undefined && { field }),
      ...(earliest !== undefined && { earliest }),
      ...(latest !== undefined && { latest }),
      ...(choices !== undefined && { choices: choices.split(", ") }),
      ...(isLoss(loss) && { loss }),
    };
    return new TapedeckError(info.reason, error.details, details, { cause: error });
  }
  if (error.code === 14 || error.code === 4 || error.code === 1) {
    return new TapedeckError(
      "not_ready",
      "a service behind this one is not ready: try again in a moment",
      {},
      { cause: error },
    );
  }
  return fromUnknown(error);
}

function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && "code" in error && typeof error.code === "number" && "metadata" in error;
}

function infoOf(error: ServiceError): ErrorInfo | undefined {
  const [bytes] = error.metadata.get(trailer);
  if (!Buffer.isBuffer(bytes)) return undefined;
  const info = Status.decode(bytes).details.find(({ type_url }) => type_url === infoType);
  return info === undefined ? undefined : ErrorInfo.decode(info.value);
}
