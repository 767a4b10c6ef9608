import { unlessAborted } from "@tapedeck/shared/sync/unless-aborted";

/** What one connection was given and has not taken yet, in bytes; what the runtime has queued counts. */
export type Unread = {
  readonly bytes: number;
  /** Resolves when that much more may be given, or the signal aborts. One message always fits into what is empty. */
  room(bytes: number, signal: AbortSignal): Promise<void>;
  /** To be called with what is given; what comes back is to be called when the connection has taken it. */
  give(bytes: number): () => void;
};

/** A slow reader is neither cut off nor buffered: past `most` it is given nothing, and the log keeps what is to come. */
export function unread(most: number): Unread {
  let waiting = 0;
  let taken = Promise.withResolvers<void>();
  return {
    get bytes() {
      return waiting;
    },
    async room(bytes, signal) {
      while (waiting > 0 && waiting + bytes > most && !signal.aborted) {
        await unlessAborted(taken.promise, signal).catch(() => {});
      }
    },
    give(bytes) {
      waiting += bytes;
      return () => {
        waiting -= bytes;
        taken.resolve();
        taken = Promise.withResolvers();
      };
    },
  };
}
