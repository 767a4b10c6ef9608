import { once } from "node:events";
import { type ClientDuplexStream, Metadata } from "@grpc/grpc-js";
import type { PushRequest, PushResponse, RecorderClient } from "@tapedeck/proto/tapedeck/v1/recorder";

/**
 * A way to the recorder: in-process, or over gRPC. Takes requests only as fast as the recorder does, ends with the
 * signal, and throws an error with a gRPC status `code` for the reasons of recorder.proto.
 */
export type Link = (requests: AsyncIterable<PushRequest>, signal: AbortSignal) => AsyncIterable<PushResponse>;

/** For the RecorderClient of a `grpcLink`: the channel's own waiting must not be longer than that of the pushing. */
export const linkOptions = { "grpc.initial_reconnect_backoff_ms": 100, "grpc.max_reconnect_backoff_ms": 2_000 };

/** tapedeck.v1.Recorder/Push. The client's receive limit must let control requests through (4 MiB do). */
export function grpcLink(client: RecorderClient, metadata = new Metadata()): Link {
  return async function* push(requests, signal) {
    const call = client.push(metadata);
    const hangUp = () => call.cancel();
    signal.addEventListener("abort", hangUp);
    void send(call, requests);
    try {
      if (!signal.aborted) for await (const response of call) yield response as PushResponse;
    } finally {
      signal.removeEventListener("abort", hangUp);
      hangUp();
    }
  };
}

/** Errors show on the answering side. */
async function send(call: ClientDuplexStream<PushRequest, PushResponse>, requests: AsyncIterable<PushRequest>) {
  for await (const request of requests) {
    if (call.destroyed || call.closed) return;
    if (call.write(request) || call.destroyed) continue;
    const over = new AbortController();
    const { signal } = over;
    await Promise.race([once(call, "drain", { signal }), once(call, "close", { signal })]).catch(() => {});
    over.abort();
  }
  call.end();
}
