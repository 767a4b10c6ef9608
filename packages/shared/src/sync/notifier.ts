/**
 * Wakes those who wait for a change. A waiter takes `next()` before it checks what it waits for, so that it misses no ring
 * in between; rings that nobody has waited for are not kept.
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
