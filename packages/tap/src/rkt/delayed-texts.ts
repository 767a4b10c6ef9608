import { startTimer, stopTimer, type Timer } from "@tapedeck/shared/sync/timers";
import type { AppOutput } from "./host-output.ts";

/** A message of a pod's or an app's stream. `isReopened`: the first one of a stream that was opened again. */
export type PodText = { readonly output: AppOutput; readonly bytes: Buffer; readonly isReopened: boolean };

const maxBytes = 16 * 1024 * 1024;

/** Delays a pod's messages until those of its apps have come, so that most lines are known as an app's. */
export class DelayedTexts {
  readonly #delayMs: number;
  readonly #emit: (text: PodText) => void;
  readonly #waiting: (PodText & { readonly due: number })[] = [];
  #bytes = 0;
  #timer: Timer | undefined;

  constructor(delayMs: number, emit: (text: PodText) => void) {
    this.#delayMs = delayMs;
    this.#emit = emit;
  }

  add(text: PodText): void {
    this.#waiting.push({ ...text, due: performance.now() + this.#delayMs });
    this.#bytes += text.bytes.byteLength;
    if (this.#bytes > maxBytes) this.#emitDue(maxBytes / 2);
    this.#timer ??= startTimer(() => this.#emitDue(), this.#delayMs);
  }

  /** Emits everything that still waits. */
  flush(): void {
    stopTimer(this.#timer);
    this.#timer = undefined;
    this.#bytes = 0;
    for (const text of this.#waiting.splice(0)) this.#emit(text);
  }

  /** Emits what has waited long enough, and the oldest until no more than `max` bytes wait. */
  #emitDue(max = maxBytes): void {
    const now = performance.now();
    const firstToStay = this.#waiting.findIndex(({ due, bytes }) => {
      if (due > now && this.#bytes <= max) return true;
      this.#bytes -= bytes.byteLength;
      return false;
    });
    const dueNow = this.#waiting.splice(0, firstToStay === -1 ? this.#waiting.length : firstToStay);
    stopTimer(this.#timer);
    const [next] = this.#waiting;
    this.#timer = next && startTimer(() => this.#emitDue(), next.due - now);
    for (const text of dueNow) this.#emit(text);
  }
}
