import type { Offset } from "../offset.ts";

/** The newest entries in order of offset, bounded in number and bytes. */
export type Ring<T extends { readonly offset: Offset }> = {
  /** The entry's index. */
  push(entry: T, bytes: number): number;
  /** The ring still holds every pushed entry after this offset. */
  readonly floor: Offset;
  /** Index of the first entry after an offset. Indices are stable while entries come and go. */
  indexAfter(offset: Offset): number;
  /** Undefined if the entry is gone or not yet pushed. */
  at(index: number): T | undefined;
  /** Drops all entries: from now on the ring holds what comes after this offset. Indices go on. */
  clear(floor: Offset): void;
  readonly bytes: number;
};

export type RingLimits = { readonly entries: number; readonly bytes: number };

export function ring<T extends { readonly offset: Offset }>(startAfter: Offset, limits: RingLimits): Ring<T> {
  return new SlotRing(startAfter, limits);
}

class SlotRing<T extends { readonly offset: Offset }> implements Ring<T> {
  readonly #limits: RingLimits;
  readonly #slots: ({ readonly entry: T; readonly bytes: number } | undefined)[];
  #first = 0;
  #end = 0;
  #floor: Offset;
  #bytes = 0;

  constructor(startAfter: Offset, limits: RingLimits) {
    this.#limits = limits;
    this.#slots = new Array(limits.entries);
    this.#floor = startAfter;
  }

  get floor(): Offset {
    return this.#floor;
  }

  get bytes(): number {
    return this.#bytes;
  }

  push(entry: T, bytes: number): number {
    const { entries: maxEntries, bytes: maxBytes } = this.#limits;
    while (this.#end > this.#first && (this.#end - this.#first >= maxEntries || this.#bytes + bytes > maxBytes)) {
      this.#dropFirst();
    }
    this.#slots[this.#end % maxEntries] = { entry, bytes };
    this.#bytes += bytes;
    return this.#end++;
  }

  indexAfter(offset: Offset): number {
    let low = this.#first;
    let high = this.#end;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#slot(middle)?.entry.offset ?? 0) > offset) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  at(index: number): T | undefined {
    return index >= this.#first && index < this.#end ? this.#slot(index)?.entry : undefined;
  }

  clear(floor: Offset): void {
    while (this.#end > this.#first) this.#dropFirst();
    this.#floor = floor;
  }

  #slot(index: number) {
    return this.#slots[index % this.#limits.entries];
  }

  #dropFirst(): void {
    const oldest = this.#slot(this.#first);
    if (oldest === undefined) return;
    this.#floor = oldest.entry.offset;
    this.#bytes -= oldest.bytes;
    this.#slots[this.#first % this.#limits.entries] = undefined;
    this.#first++;
  }
}
