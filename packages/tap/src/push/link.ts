import { once } from "node:events";
import {
  type ChannelCredentials,
  type ChannelOptions,
  Client,
  type ClientDuplexStream,
  connectivityState,
  Metadata,
} from "@grpc/grpc-js";
import { type PushRequest, type PushResponse, RecorderService } from "@tapedeck/proto/tapedeck/v1/recorder";
import { startTimer, stopTimer } from "@tapedeck/shared/sync/timers";

/**
 * A way to the recorder: in-process, or over gRPC. Takes requests only as fast as the recorder does, ends with the
 * signal, and throws an error with a gRPC status `code` for the reasons of recorder.proto.
 */
export type RecorderLink = (requests: AsyncIterable<PushRequest>, signal: AbortSignal) => AsyncIterable<PushResponse>;

/** For the client of a `grpcLink`: the channel's own delays must not be longer than those of the push. */
export const linkOptions = { "grpc.initial_reconnect_backoff_ms": 100, "grpc.max_reconnect_backoff_ms": 2_000 };

/** Detects a network that swallows everything within 20 s, with and without traffic. */
const overNetworks = {
  ...linkOptions,
  "grpc.keepalive_time_ms": 10_000,
  "grpc.keepalive_timeout_ms": 10_000,
  // Control requests may be as large as a gateway's limit, and they are wrapped in a message.
  "grpc.max_receive_message_length": 8 << 20,
  "grpc.enable_retries": 0,
  // Each attempt has its own connection.
  "grpc.use_local_subchannel_pool": 1,
};

/** For a connection including TLS. gRPC itself would wait forever. */
const longestConnectMs = 20_000;

/** The endpoint of a gateway for pushes. */
export type GatewayLink = {
  /** "host:port". */
  readonly address: string;
  readonly credentials: ChannelCredentials;
  readonly metadata: Metadata;
  readonly options?: ChannelOptions;
};

/** A link to a gateway over any network. Each push has its own connection, and a dead one is detected. */
export function gatewayLink(
  { address, credentials, metadata, options }: GatewayLink,
  connectMs: number = longestConnectMs,
): RecorderLink {
  return async function* push(requests, signal) {
    const client = new Client(address, credentials, { ...overNetworks, ...options });
    const late = new AbortController();
    const timer = startTimer(() => {
      if (client.getChannel().getConnectivityState(false) !== connectivityState.READY) late.abort();
    }, connectMs);
    try {
      yield* grpcLink(client, metadata)(requests, AbortSignal.any([signal, late.signal]));
    } catch (cause) {
      if (!late.signal.aborted) throw cause;
      throw Object.assign(new Error(`no answer within ${connectMs / 1_000} s`), { code: "ETIMEDOUT" });
    } finally {
      stopTimer(timer);
      client.close();
    }
  };
}

/** tapedeck.v1.Recorder/Push. The client's receive limit must let control requests through (4 MiB do). */
export function grpcLink(client: Client, metadata = new Metadata()): RecorderLink {
  const { path, requestSerialize, responseDeserialize } = RecorderService.push;
  return async function* push(requests, signal) {
    const call = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, metadata);
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

/** Errors appear on the reading side. */
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
