import { UpstreamError } from "../upstream-error.ts";

// rkt answers nearly everything with UNKNOWN and a text, which is all that its clients can go by.
const unknown = 2;
const failedPrecondition = 9;

/** Of InspectPod and GetLogs: no such pod, more than one with that prefix, or no id at all. */
export function unresolvedPod(): UpstreamError {
  return new UpstreamError(unknown, "unable to resolve UUID");
}

export function imageNotFound(id: string): UpstreamError {
  return new UpstreamError(unknown, `ACI info not found with blob key ${quoted(id)}`);
}

/** `podId`: as the client gave it. */
export function loggingUnsupported(podId: string): UpstreamError {
  return new UpstreamError(unknown, `logging unsupported for pod ${quoted(podId)}`);
}

/** A request that is no message: rkt's gRPC library says it so. */
export function unreadableRequest(): UpstreamError {
  return new UpstreamError(failedPrecondition, "unexpected EOF");
}

/** As Go's %q, but for control characters, which no id has. */
function quoted(text: string): string {
  return JSON.stringify(text);
}
