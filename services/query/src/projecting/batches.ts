import { setImmediate as nextTurn } from "node:timers/promises";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { logStart, type Offset } from "@tapedeck/shared/log/offset";
import { Notifier } from "@tapedeck/shared/sync/notifier";
import type { SetAsideEvent } from "./set-aside.ts";

export type BatchLimits = {
  readonly events: number;
  /** Bytes of the originals, which make up nearly all of an event. One event always fits. */
  readonly bytes: number;
};

export const defaultLimits: BatchLimits = { events: 1_000, bytes: 8 * 1024 * 1024 };

export type Batch = {
  readonly events: readonly RecordedEvent[];
  /** All events up to this offset were yielded with this batch: the whole message of the last one, or more. */
  readonly reached?: Offset;
  /** Events between the last batch and these that can't be applied. */
  readonly refused?: readonly SetAsideEvent[];
};

/** Opens the stream, which calls `reached` whenever it has yielded all that there is up to an offset. */
export type OpenStream = (reached: (offset: Offset) => void) => AsyncIterable<RecordedEvent>;

/**
 * Cuts a stream into batches: whatever came while the last batch was processed, up to the limits. So batches are large while many
 * events come. Reads ahead by one batch at most.
 */
export async function* batches(
  open: OpenStream,
  limits: BatchLimits,
  signal: AbortSignal,
): AsyncGenerator<Batch, void> {
  const buffer = new BatchBuffer(limits, signal);
  const release = () => buffer.release();
  signal.addEventListener("abort", release);
  void buffer.fill(open);
  try {
    while (!signal.aborted) {
      if (buffer.hasBatch) {
        await buffer.gathered();
        yield buffer.take();
      } else if (buffer.end !== undefined) {
        if (buffer.end.isError) throw buffer.end.error;
        return;
      } else {
        await buffer.filled();
      }
    }
  } finally {
    signal.removeEventListener("abort", release);
  }
}

type StreamEnd = { readonly isError: false } | { readonly isError: true; readonly error: unknown };

/** The next batch, while it is being filled. */
class BatchBuffer {
  readonly #limits: BatchLimits;
  readonly #signal: AbortSignal;
  readonly #filled = new Notifier();
  readonly #emptied = new Notifier();
  #events: RecordedEvent[] = [];
  #bytes = 0;
  #reached: Offset | undefined;
  #announced: Offset = logStart;
  #end: StreamEnd | undefined;

  constructor(limits: BatchLimits, signal: AbortSignal) {
    this.#limits = limits;
    this.#signal = signal;
  }

  get hasBatch(): boolean {
    return this.#events.length > 0 || this.#reached !== undefined;
  }

  get end(): StreamEnd | undefined {
    return this.#end;
  }

  /** Reads the stream to its end, and pauses while the buffer is full. */
  async fill(open: OpenStream): Promise<void> {
    try {
      const stream = open((offset) => {
        if (offset <= this.#announced) return;
        this.#announced = offset;
        this.#reached = offset;
        this.#filled.ring();
      });
      for await (const recorded of stream) {
        this.#events.push(recorded);
        this.#bytes += recorded.event.original?.bytes.length ?? 0;
        this.#filled.ring();
        while (this.#isFull && !this.#signal.aborted) await this.#emptied.next();
        if (this.#signal.aborted) break;
      }
      this.#end = { isError: false };
    } catch (error) {
      this.#end = { isError: true, error };
    }
    this.#filled.ring();
  }

  /** Resolves when a turn of the event loop has brought nothing more: what is there already belongs together. */
  async gathered(): Promise<void> {
    for (let before = -1; before !== this.#events.length && !this.#isFull; ) {
      before = this.#events.length;
      await nextTurn();
    }
  }

  take(): Batch {
    const batch = { events: this.#events, ...(this.#reached !== undefined && { reached: this.#reached }) };
    this.#events = [];
    this.#bytes = 0;
    this.#reached = undefined;
    this.#emptied.ring();
    return batch;
  }

  filled(): Promise<void> {
    return this.#filled.next();
  }

  /** Wakes both sides so that they see the signal. */
  release(): void {
    this.#emptied.ring();
    this.#filled.ring();
  }

  get #isFull(): boolean {
    return this.#events.length >= this.#limits.events || this.#bytes >= this.#limits.bytes;
  }
}
