import { startInterval, stopTimer, type Timer } from "@tapedeck/shared/sync/timers";

/**
 * The oldest message of a replay comes within this time, although live messages may overtake it. Counted in steps, because
 * this process may be held up itself.
 */
const steps = { count: 10, ms: 100 } as const;

/**
 * Determines whether the present process is another one than the process that sent a message at the time `lastSeenAt`, on a
 * channel that replays everything since its process began. Calls `onOther` once, when that is certain: messages have
 * come, and for a second none as old as that. A process that sends nothing, or nothing with a time, stays undecided.
 */
export class OtherProcessDetector {
  readonly #lastSeenAt: number;
  readonly #onOther: () => void;
  #timer: Timer | undefined;
  #isDecided = false;

  constructor(lastSeenAt: number, onOther: () => void) {
    this.#lastSeenAt = lastSeenAt;
    this.#onOther = onOther;
  }

  /** Takes the time of a message in ms since 1970, 0 if it can't be read. */
  messageAt(at: number): void {
    if (this.#isDecided) return;
    if (at <= this.#lastSeenAt) {
      this.stop();
      return;
    }
    let left: number = steps.count;
    this.#timer ??= startInterval(() => {
      if (--left > 0) return;
      this.stop();
      this.#onOther();
    }, steps.ms);
  }

  /** Concludes nothing from now on. */
  stop(): void {
    this.#isDecided = true;
    stopTimer(this.#timer);
  }
}
