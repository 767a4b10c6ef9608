import { UpstreamError } from "../upstream-error.ts";

const invalidArgument = 3;
const notFound = 5;
const failedPrecondition = 9;
const unimplemented = 12;
const internal = 13;

/** Of whatever the server stores: "basis", "project", "target", "box", "runner". */
export function recordNotFound(kind: string): UpstreamError {
  return new UpstreamError(notFound, `failed to locate ${kind} (record not found)`);
}

/** Of GetJob and GetJobStream: an id that no job has, or none at all. */
export function jobNotFound(): UpstreamError {
  return new UpstreamError(notFound, "job not found");
}

/** Of a request without the message that it is about. */
export function absent(name: string): UpstreamError {
  return new UpstreamError(failedPrecondition, `${name}: cannot be nil`);
}

/** Of a name that is unique only inside of something that the request does not say. */
export function withoutParent(kind: string): UpstreamError {
  return new UpstreamError(failedPrecondition, `cannot lookup ${kind} (proto reference does not include parent)`);
}

/** Whatever does not validate is INTERNAL to Vagrant. */
export function invalid(problem: string): UpstreamError {
  return new UpstreamError(internal, problem);
}

/** Bytes that are no request: Go's gRPC library says it so. */
export function unreadableRequest(): UpstreamError {
  return new UpstreamError(internal, "grpc: error unmarshalling request");
}

/** Of the metadata that go with every call. */
export function protocolRefused(text: string): UpstreamError {
  return new UpstreamError(invalidArgument, text);
}

export function notOffered(why: string): UpstreamError {
  return new UpstreamError(unimplemented, why);
}
