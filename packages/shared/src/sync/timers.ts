/** The longest time that a timer of Node takes, 24.8 days. A longer one would fire at once. */
const maxTimerMs = 2 ** 31 - 1;

/**
 * The timers of all production code: the only ones that take any duration, Infinity included. The linter keeps Node's own
 * out of every other file.
 */
export type Timer = Disposable & {
  /** Does not keep the process alive. */
  unref(): Timer;
  /** Begins the time anew, also after it has passed. A timer that was stopped stays stopped. */
  refresh(): Timer;
};

/** Calls `run` once, after `ms` milliseconds. */
export function startTimer(run: () => void, ms: number): Timer {
  return new ChainedTimer(run, ms, false);
}

/** Calls `run` every `ms` milliseconds. */
export function startInterval(run: () => void, ms: number): Timer {
  return new ChainedTimer(run, ms, true);
}

/** Undefined: there is nothing to stop. */
export function stopTimer(timer: Timer | undefined): void {
  timer?.[Symbol.dispose]();
}

/** Aborts with a TimeoutError after `ms` milliseconds. Does not keep the process alive. */
export function timeoutSignal(ms: number): AbortSignal {
  if (ms <= maxTimerMs) return AbortSignal.timeout(Math.max(0, Math.ceil(ms)));
  const controller = new AbortController();
  startTimer(() => controller.abort(new DOMException("the operation timed out", "TimeoutError")), ms).unref();
  return controller.signal;
}

/** Waits for a long time in several timers. */
class ChainedTimer implements Timer {
  readonly #run: () => void;
  readonly #ms: number;
  readonly #repeats: boolean;
  #leftMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #keepsAlive = true;
  #isStopped = false;

  constructor(run: () => void, ms: number, repeats: boolean) {
    this.#run = run;
    this.#ms = ms;
    this.#repeats = repeats;
    this.#start();
  }

  unref(): this {
    this.#keepsAlive = false;
    this.#timer?.unref();
    return this;
  }

  refresh(): this {
    if (!this.#isStopped) this.#start();
    return this;
  }

  [Symbol.dispose](): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  #start(): void {
    // Most timers are short, and are refreshed with each message: Node's own refresh costs next to nothing.
    if (this.#timer !== undefined && this.#ms <= maxTimerMs && !this.#repeats) {
      this.#leftMs = 0;
      this.#timer.refresh();
      return;
    }
    this.#leftMs = this.#ms;
    this.#next();
  }

  #next(): void {
    clearTimeout(this.#timer);
    const partMs = Math.min(this.#leftMs, maxTimerMs);
    this.#leftMs -= partMs;
    this.#timer = setTimeout(() => this.#passed(), partMs);
    if (!this.#keepsAlive) this.#timer.unref();
  }

  #passed(): void {
    if (this.#leftMs > 0) {
      this.#next();
      return;
    }
    // Before it runs, so that it may be stopped there.
    if (this.#repeats) this.#start();
    this.#run();
  }
}
