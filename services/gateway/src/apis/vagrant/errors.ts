import { UpstreamError } from "../upstream-error.ts";

const notFound = 5;

/** What the server has of whatever it stores: "basis", "project", "target", "box", "runner", "job". */
export function recordNotFound(kind: string): UpstreamError {
  return new UpstreamError(notFound, `failed to locate ${kind} (record not found)`);
}

/** Of GetJob, GetJobStream and CancelJob: an id that no job has, or none at all. */
export function jobNotFound(): UpstreamError {
  return new UpstreamError(notFound, "job not found");
}
