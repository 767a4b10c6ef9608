import { abortable } from "@tapedeck/shared/sync/abortable";
import { Notifier } from "@tapedeck/shared/sync/notifier";

/** How many bytes, or characters, are worth a write of their own: more at once saves nothing. */
export const enoughAtOnce = 64 * 1024;

/**
 * The bytes that were written to one connection and that its peer has not taken yet, the runtime's queue included. A slow
 * reader is neither cut off nor buffered: past `max` nothing is written to it, and the log keeps what follows.
 */
export class SendWindow {
  readonly #max: number;
  readonly #taken = new Notifier();
  #bytes = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether this many bytes fit now. One message always fits into an empty window. */
  hasRoom(bytes: number): boolean {
    return this.#bytes === 0 || this.#bytes + bytes <= this.#max;
  }

  /** Resolves when this many bytes fit, or when the signal aborts. */
  async room(bytes: number, signal: AbortSignal): Promise<void> {
    while (!this.hasRoom(bytes) && !signal.aborted) {
      await abortable(this.#taken.next(), signal).catch(() => {});
    }
  }

  /** Counts bytes that are written. Call the result when the peer has taken them. */
  add(bytes: number): () => void {
    this.#bytes += bytes;
    return () => {
      this.#bytes -= bytes;
      this.#taken.ring();
    };
  }
}
