import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { startInterval, stopTimer } from "@tapedeck/shared/sync/timers";

/** How late a call may end after its JWT. */
const checkMs = 1_000;

/** Signals that abort when a JWT or a session expires: one for each second in which some do, however many calls there are. */
export class Deadlines implements Disposable {
  readonly #bySecond = new Map<number, AbortController>();
  readonly #timer = startInterval(() => this.#check(), checkMs).unref();

  /** Aborts at that time (Unix, ms), with `unauthenticated` as its reason. */
  at(timeMs: number): AbortSignal {
    const second = Math.ceil(timeMs / 1_000);
    const known = this.#bySecond.get(second) ?? new AbortController();
    this.#bySecond.set(second, known);
    return known.signal;
  }

  [Symbol.dispose](): void {
    stopTimer(this.#timer);
  }

  #check(): void {
    const now = Date.now() / 1_000;
    for (const [second, deadline] of this.#bySecond) {
      if (second > now) continue;
      this.#bySecond.delete(second);
      deadline.abort(
        new TapedeckError("unauthenticated", "your sign-in at the identity provider has expired: sign in again"),
      );
    }
  }
}
