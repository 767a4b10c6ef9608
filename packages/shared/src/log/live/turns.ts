/** How many continue in one turn of the event loop: each may send an event, which takes some 10 to 30 µs. */
const atOnce = 32;

/**
 * Lets waiters continue in order, a few in each turn of the event loop. A thousand at once would hold it for as long as
 * all of them need.
 */
export class Turns {
  readonly #perTurn: number;
  #waiting: (() => void)[] = [];
  #first = 0;
  #isDue = false;

  constructor(perTurn = atOnce) {
    this.#perTurn = perTurn;
  }

  /** Calls it in one of the next turns. */
  add(goOn: () => void): void {
    this.#waiting.push(goOn);
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(this.#run);
  }

  /** Resolves in one of the next turns. */
  next(): Promise<void> {
    return new Promise((resolve) => this.add(resolve));
  }

  readonly #run = (): void => {
    const end = Math.min(this.#first + this.#perTurn, this.#waiting.length);
    while (this.#first < end) this.#waiting[this.#first++]?.();
    if (this.#first < this.#waiting.length) {
      setImmediate(this.#run);
      return;
    }
    this.#waiting = [];
    this.#first = 0;
    this.#isDue = false;
  };
}
