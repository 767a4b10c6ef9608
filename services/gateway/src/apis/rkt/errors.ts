import { UpstreamError } from "../upstream-error.ts";

// rkt answers nearly every refusal with UNKNOWN, so its clients distinguish them by the text.
const unknown = 2;
const failedPrecondition = 9;

/** InspectPod and GetLogs answer this to an unknown id, an ambiguous prefix and an empty id. */
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

/** Bytes that are not a request, as rkt's gRPC library words it. */
export function unreadableRequest(): UpstreamError {
  return new UpstreamError(failedPrecondition, "unexpected EOF");
}

/** Like Go's %q, except for control characters, which no id has. */
function quoted(text: string): string {
  return JSON.stringify(text);
}
