import { UpstreamError } from "../upstream-error.ts";

const invalidArgument = 3;
const notFound = 5;
const failedPrecondition = 9;
const unimplemented = 12;
const internal = 13;

/** `kind`: what the server stores: "basis", "project", "target", "box", "runner". */
export function recordNotFound(kind: string): UpstreamError {
  return new UpstreamError(notFound, `failed to locate ${kind} (record not found)`);
}

/** GetJob and GetJobStream answer this to an id that no job has, and to none at all. */
export function jobNotFound(): UpstreamError {
  return new UpstreamError(notFound, "job not found");
}

/** The request lacks the message that it is about. */
export function absent(name: string): UpstreamError {
  return new UpstreamError(failedPrecondition, `${name}: cannot be nil`);
}

/** The request lacks the parent within which the name is unique. */
export function withoutParent(kind: string): UpstreamError {
  return new UpstreamError(failedPrecondition, `cannot lookup ${kind} (proto reference does not include parent)`);
}

/** GetLogStream's request names no basis, project or target. */
export function invalidScope(): UpstreamError {
  return new UpstreamError(failedPrecondition, "invalid scope supplied");
}

/** Vagrant answers INTERNAL to whatever does not validate. */
export function invalid(message: string): UpstreamError {
  return new UpstreamError(internal, message);
}

/** Bytes that are not a request, as Go's gRPC library words it. */
export function unreadableRequest(): UpstreamError {
  return new UpstreamError(internal, "grpc: error unmarshalling request");
}

/** The metadata that go with every call are missing or wrong. */
export function protocolRefused(text: string): UpstreamError {
  return new UpstreamError(invalidArgument, text);
}

export function notOffered(why: string): UpstreamError {
  return new UpstreamError(unimplemented, why);
}
