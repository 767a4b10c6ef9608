import type { Offset } from "@tapedeck/shared/log/offset";
import type { SinkKey, SinkStore } from "@tapedeck/shared/sinks/sink-store";
import { startTimer, stopTimer, type Timer } from "@tapedeck/shared/sync/timers";
import type { SinkTimes } from "./times.ts";

export type SinkCursorOptions = {
  readonly store: Pick<SinkStore, "put">;
  readonly key: SinkKey;
  /** The revision at which it was read. */
  readonly revision: number;
  readonly generation: string;
  readonly offset: Offset;
  readonly written: (offset: Offset) => string;
  /** What the sink's format remembers at an offset. */
  readonly memory?: (offset: Offset) => string | undefined;
  readonly times: Pick<SinkTimes, "cursorMs" | "passedMs">;
};

/**
 * Up to where a sink has delivered. It is written now and then, at most once at a time, and each write names the revision that it follows:
 * a gateway that has lost the sink writes nothing more. What was delivered after the last write is delivered again.
 */
export class SinkCursor implements AsyncDisposable {
  readonly #options: SinkCursorOptions;
  readonly #lost = new AbortController();
  #revision: number;
  #offset: Offset;
  #stored: Offset;
  #writing: Promise<void> | undefined;
  #timer: { readonly timer: Timer; readonly dueAt: number } | undefined;
  #writtenAt = Number.NEGATIVE_INFINITY;
  #isOver = false;
  /** What is stored is not what the format remembers. */
  #isStale = false;

  constructor(options: SinkCursorOptions) {
    this.#options = options;
    this.#revision = options.revision;
    this.#offset = options.offset;
    this.#stored = options.offset;
  }

  get offset(): Offset {
    return this.#offset;
  }

  /** Aborts when somebody else has written it. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Everything up to this offset is delivered, or parked. */
  delivered(offset: Offset): void {
    this.#advance(offset, this.#options.times.cursorMs);
  }

  /** The format remembers something else at the same offset. */
  remembered(): void {
    this.#isStale = true;
    this.#schedule(this.#options.times.cursorMs);
  }

  /** Nothing up to this offset is of interest. */
  passed(offset: Offset): void {
    this.#advance(offset, this.#options.times.passedMs);
  }

  /** Writes what is not written yet. Never rejects: what could not be written is delivered again. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    stopTimer(this.#timer?.timer);
    await this.#writing;
    await this.#write();
  }

  #advance(offset: Offset, afterMs: number): void {
    if (offset <= this.#offset) return;
    this.#offset = offset;
    this.#schedule(afterMs);
  }

  #schedule(afterMs: number): void {
    const now = performance.now();
    const dueAt = Math.max(now, this.#writtenAt + afterMs);
    if (this.#timer !== undefined && this.#timer.dueAt <= dueAt) return;
    stopTimer(this.#timer?.timer);
    this.#timer = { timer: startTimer(() => this.#due(), dueAt - now).unref(), dueAt };
  }

  #due(): void {
    this.#timer = undefined;
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
      if (this.#offset > this.#stored || this.#isStale) this.#again();
    });
  }

  #again(): void {
    if (this.#isOver || this.#lost.signal.aborted || this.#timer !== undefined) return;
    const { cursorMs } = this.#options.times;
    this.#timer = { timer: startTimer(() => this.#due(), cursorMs).unref(), dueAt: performance.now() + cursorMs };
  }

  async #write(): Promise<void> {
    const offset = this.#offset;
    if ((offset === this.#stored && !this.#isStale) || this.#lost.signal.aborted) return;
    const { store, key, generation, written } = this.#options;
    const memory = this.#options.memory?.(offset);
    const value = {
      position: written(offset),
      generation,
      ...(memory !== undefined && { memory }),
      at: new Date().toISOString(),
    };
    this.#writtenAt = performance.now();
    this.#isStale = false;
    try {
      const revision = await store.put(key, value, { revision: this.#revision });
      if (revision === undefined) return this.#lost.abort();
      this.#revision = revision;
      this.#stored = offset;
    } catch {
      this.#isStale = true;
      // NATS is away, or has written it without an answer: then the next write is refused, and the cursor is read again.
    }
  }
}
