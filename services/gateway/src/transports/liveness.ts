import type { Liveness } from "@tapedeck/shared/service/peer-liveness";
import { startTimer, stopTimer, type Timer } from "@tapedeck/shared/sync/timers";

/** WebSocket peers that are gone are found within 35 s, including the farewell. */
export const liveness: Liveness = { quietMs: 15_000, silentMs: 34_000 };

/** Calls `ask` when a peer has been quiet for long enough, and `close` once when it was silent for too long. */
export class Heartbeat {
  readonly #liveness: Liveness;
  readonly #ask: () => void;
  readonly #close: () => void;
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(liveness: Liveness, ask: () => void, close: () => void) {
    this.#liveness = liveness;
    this.#ask = ask;
    this.#close = close;
    this.#wait();
  }

  /** To be called for every sign of life of the peer. */
  alive(): void {
    if (this.#isStopped) return;
    stopTimer(this.#timer);
    this.#wait();
  }

  stop(): void {
    this.#isStopped = true;
    stopTimer(this.#timer);
  }

  #wait(): void {
    const { quietMs, silentMs } = this.#liveness;
    this.#timer = startTimer(() => {
      this.#ask();
      this.#timer = startTimer(this.#close, silentMs - quietMs);
    }, quietMs);
  }
}
