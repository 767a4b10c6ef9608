/**
 * Wakes those who wait for a change. A waiter takes `next()` before it checks its condition, so that it misses no ring
 * in between; rings without a waiter are not kept.
 */
export class Notifier {
  #next: PromiseWithResolvers<void> | undefined;

  /** Resolves at the first ring after this call. */
  next(): Promise<void> {
    this.#next ??= Promise.withResolvers();
    return this.#next.promise;
  }

  ring(): void {
    this.#next?.resolve();
    this.#next = undefined;
  }
}
