/** A recorder that missed a list gets it again after this time, although nothing has changed. */
const wholeEveryMs = 10_000;

/** Decides when a list is emitted whole, and when "the same as the one before" is enough. */
export class WholeListInterval {
  #emittedAt = Number.NEGATIVE_INFINITY;

  /** True when the list must be emitted whole now. The interval then starts again. */
  isDue(hasChanged: boolean, now = performance.now()): boolean {
    if (!hasChanged && now - this.#emittedAt < wholeEveryMs) return false;
    this.#emittedAt = now;
    return true;
  }
}
