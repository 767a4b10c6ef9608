import { status } from "@grpc/grpc-js";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import type { WakeableTimer } from "../polling/wakeable-timer.ts";

/** An abandoned call continues inside the server, so failing calls must not become many. */
const failedMs = { first: 250, longest: 30_000 };

/** Growing delays between calls that fail. */
export class FailureDelay {
  readonly #timer: WakeableTimer;
  readonly #signal: AbortSignal;
  readonly #backoff = backoff(failedMs.first, failedMs.longest);

  constructor(timer: WakeableTimer, signal: AbortSignal) {
    this.#timer = timer;
    this.#signal = signal;
  }

  /** Waits after a failure with this code. Waking the timer does not shorten the delay of a server that hangs. */
  after(code: number): Promise<void> {
    const ms = this.#backoff.next();
    return code === status.DEADLINE_EXCEEDED ? delay(ms, this.#signal) : this.#timer.delay(ms);
  }

  /** A call succeeded: the next failure starts with the shortest delay. */
  reset(): void {
    this.#backoff.reset();
  }
}
