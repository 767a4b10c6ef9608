/**
 * How long a source whose recorder is cut off without a word looks recorded, in ms. The process that holds the
 * recorder's connection (the gateway, or ingest itself) finds out by HTTP/2 pings that it is gone; from then on ingest
 * waits for it.
 */
const lostWithinMs = 30_000;
/** A recorder that was cut off by a fault of the network or a restart of ours is back by then. */
const noticeMs = 15_000;
/** For the path from the gateway to ingest, and for what the log has of the source. */
const slackMs = 1_000;

/** The times after which a recorder that is cut off counts as gone, in ms. */
export const recorderTimeouts = { lostWithinMs, noticeMs, slackMs } as const;

/** When a silent peer is pinged, and when it counts as gone. Milliseconds. */
export type Liveness = { readonly quietMs: number; readonly silentMs: number };

/**
 * The times for peers at gRPC servers. A server may ping as often as it likes: the limits on pings that gRPC knows are those of
 * servers on their clients. So it asks often, which leaves more of the time for the answer.
 */
export const grpcLiveness: Liveness = { quietMs: 5_000, silentMs: lostWithinMs - noticeMs - slackMs };

/** For a gRPC server. A peer is found to be gone at most `silentMs` after its last sign of life. */
export function keepaliveOptions({ quietMs, silentMs }: Liveness) {
  return { "grpc.keepalive_time_ms": quietMs, "grpc.keepalive_timeout_ms": silentMs - quietMs } as const;
}
