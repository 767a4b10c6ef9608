import { startTimer, stopTimer } from "./timers.ts";

/**
 * A controller that aborts with a signal, too, and with a TimeoutError after `ms` milliseconds, which do not keep the process alive.
 * Leaves nothing behind once it is disposed: on Node 20, AbortSignal.any keeps some bytes of each call for as long as its signals live.
 */
export class LinkedController extends AbortController implements Disposable {
  readonly #links = new DisposableStack();

  constructor(signal: AbortSignal, ms = Number.POSITIVE_INFINITY) {
    super();
    const aborted = () => this.abort(signal.reason);
    if (signal.aborted) aborted();
    signal.addEventListener("abort", aborted);
    this.#links.defer(() => signal.removeEventListener("abort", aborted));
    if (ms === Number.POSITIVE_INFINITY) return;
    const late = () => this.abort(new DOMException("the operation timed out", "TimeoutError"));
    const timer = startTimer(late, ms).unref();
    this.#links.defer(() => stopTimer(timer));
  }

  /** The signal stays as it is. */
  [Symbol.dispose](): void {
    this.#links.dispose();
  }
}
