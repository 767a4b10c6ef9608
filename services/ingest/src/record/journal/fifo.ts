/** First in, first out. Taking from an array's front moves all that is left each time; this one moves it when it is half empty. */
export class Fifo<T> {
  #items: T[] = [];
  /** Everything before it was dropped. */
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  /** Counted from the first, or from behind the last one with -1, -2 …; undefined where there is none. */
  at(index: number): T | undefined {
    if (index < -this.length) return undefined;
    return index < 0 ? this.#items.at(index) : this.#items[this.#head + index];
  }

  push(item: T): void {
    this.#items.push(item);
  }

  /** Drops so many from the front. */
  drop(count: number): void {
    this.#head = Math.min(this.#head + count, this.#items.length);
    if (this.#head < this.#items.length / 2) return;
    this.#items = this.#items.slice(this.#head);
    this.#head = 0;
  }
}
