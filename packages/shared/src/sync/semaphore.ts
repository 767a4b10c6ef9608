/** Lets a bounded number of callers proceed at once; the rest wait in line. */
export class Semaphore {
  readonly #atOnce: number;
  readonly #line = new Set<() => void>();
  #running = 0;

  constructor(atOnce: number) {
    this.#atOnce = atOnce;
  }

  get waiting(): number {
    return this.#line.size;
  }

  get running(): number {
    return this.#running;
  }

  /** Resolves with the function that releases the permit; with undefined when the signal aborts first. */
  acquire(signal: AbortSignal): Promise<(() => void) | undefined> {
    if (signal.aborted) return Promise.resolve(undefined);
    if (this.#running < this.#atOnce) return Promise.resolve(this.#start());
    return new Promise((resolve) => {
      const called = () => {
        signal.removeEventListener("abort", leave);
        resolve(this.#start());
      };
      const leave = () => {
        this.#line.delete(called);
        resolve(undefined);
      };
      this.#line.add(called);
      signal.addEventListener("abort", leave, { once: true });
    });
  }

  #start(): () => void {
    this.#running++;
    let ended = false;
    return () => {
      if (!ended) this.#end();
      ended = true;
    };
  }

  #end(): void {
    this.#running--;
    const [next] = this.#line;
    if (next === undefined) return;
    this.#line.delete(next);
    next();
  }
}
