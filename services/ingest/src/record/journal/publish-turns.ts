import { startTimer } from "@tapedeck/shared/sync/timers";

/** How long one turn comes after the other at least: usually, and while much is published. */
const everyMs = 2;
const busyEveryMs = 4;

/** At least so many messages within so many milliseconds are much: others will come in a moment. */
const busy = { messages: 8, withinMs: 64 } as const;

/** A clock in milliseconds, and a way to be called after some of them; 0: at the end of the event loop's turn. */
export type TurnTime = { readonly now: () => number; readonly after: (ms: number, run: () => void) => void };

const realTime: TurnTime = {
  now: () => performance.now(),
  after: (ms, run) => void (ms > 0 ? startTimer(run, Math.ceil(ms)) : setImmediate(run)),
};

/**
 * When writers publish: at the end of the event loop's turn, all at once, and 2 ms after the turn before at the earliest, or
 * 4 ms while much is published. So what a source appends meanwhile is one message, which saves a sync of the disk and a
 * wake-up of each process that reads it, and the messages of all sources are one write to the socket. An event that comes
 * alone waits for nothing.
 */
export class PublishTurns {
  readonly #time: TurnTime;
  #next: Promise<void> | undefined;
  #lastAt = Number.NEGATIVE_INFINITY;
  /** When the last messages were published, as a ring. */
  readonly #published = new Array<number>(busy.messages).fill(Number.NEGATIVE_INFINITY);
  #count = 0;
  #waiting = 0;

  constructor(time: TurnTime = realTime) {
    this.#time = time;
  }

  /** Resolves when a writer may publish a message. */
  next(): Promise<void> {
    this.#waiting++;
    this.#next ??= new Promise((resolve) => {
      const begin = () => {
        this.#next = undefined;
        this.#lastAt = this.#time.now();
        for (; this.#waiting > 0; this.#waiting--) this.#published[this.#count++ % busy.messages] = this.#lastAt;
        resolve();
      };
      const now = this.#time.now();
      this.#time.after(Math.max(0, this.#lastAt + this.#everyMs(now) - now), begin);
    });
    return this.#next;
  }

  #everyMs(now: number): number {
    const oldest = this.#published[this.#count % busy.messages] as number;
    return oldest > now - busy.withinMs ? busyEveryMs : everyMs;
  }
}

/** Those of all writers of this process. */
export const publishTurns = new PublishTurns();
