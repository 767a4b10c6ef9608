/** Times and bounds of streams between clients and upstreams (StreamMessage in recorder.proto). */
export const relayedStreams = {
  /** Bytes of `data` that a sender may have on their way; a larger message goes alone. */
  windowBytes: 1 << 20,
  /** Gateway and ingest send `alive` so often, in ms. */
  aliveMs: 5_000,
  /** Without anything from the other side for this time, in ms, a stream is over. */
  silentMs: 20_000,
  /** Streams of one source that are open at the same time. */
  maxOpen: 64,
} as const;
