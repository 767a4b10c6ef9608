import type { TapedeckEvent } from "@tapedeck/client";

/** The newest of any number of events, within a number of them and of characters of their JSON. */
export class NewestEvents {
  /** How many were added. */
  count = 0;
  readonly #max: number;
  readonly #maxCharacters: number;
  #events: TapedeckEvent[] = [];
  #sizes: number[] = [];
  /** Those before it are left out. */
  #first = 0;
  #characters = 0;

  constructor(max: number, maxCharacters: number) {
    this.#max = max;
    this.#maxCharacters = maxCharacters;
  }

  add(event: TapedeckEvent): void {
    this.count++;
    const size = JSON.stringify(event).length;
    this.#events.push(event);
    this.#sizes.push(size);
    this.#characters += size;
    while (this.#length > 1 && (this.#length > this.#max || this.#characters > this.#maxCharacters)) {
      this.#characters -= this.#sizes[this.#first++] ?? 0;
    }
    // Moves as many events as are kept: each event is moved once or twice at most, and memory is at most doubled.
    if (this.#first > this.#length) this.#forget();
  }

  get events(): readonly TapedeckEvent[] {
    this.#forget();
    return this.#events;
  }

  get #length(): number {
    return this.#events.length - this.#first;
  }

  #forget(): void {
    this.#events = this.#events.slice(this.#first);
    this.#sizes = this.#sizes.slice(this.#first);
    this.#first = 0;
  }
}
