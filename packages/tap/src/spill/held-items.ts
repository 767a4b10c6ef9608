import type { Item } from "@tapedeck/proto/tapedeck/v1/recorder";

export type HeldItem = { readonly item: Item; readonly bytes: number };

/** The items that a spill has in memory, in the order of their indexes, which may have holes. */
export class HeldItems {
  #items: (HeldItem | undefined)[] = [];
  /** The place of the first item. The places before it are empty. */
  #first = 0;
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  /** The item with the smallest index. */
  get first(): HeldItem | undefined {
    return this.#items[this.#first];
  }

  /** Takes only an item with a higher index than all others. */
  add(item: Item, bytes: number): void {
    this.#items.push({ item, bytes });
    this.#bytes += bytes;
  }

  removeFirst(): void {
    this.#bytes -= this.first?.bytes ?? 0;
    this.#items[this.#first++] = undefined;
    if (this.#first * 2 < this.#items.length) return;
    this.#items = this.#items.slice(this.#first);
    this.#first = 0;
  }

  /** The smallest index from this one on. */
  indexFrom(least: bigint): bigint | undefined {
    return this.#items[this.#placeOf(least)]?.item.index;
  }

  /** The item with this index and those that follow it without a hole: as many as fit, at least one. */
  run(index: bigint, max: { readonly items: number; readonly bytes: number }): Item[] {
    const run: Item[] = [];
    let bytes = 0;
    for (let at = this.#placeOf(index); run.length < max.items; at++) {
      const held = this.#items[at];
      if (held === undefined || held.item.index !== index + BigInt(run.length)) break;
      bytes += held.bytes;
      if (run.length > 0 && bytes > max.bytes) break;
      run.push(held.item);
    }
    return run;
  }

  /** The place of the first item from this index on. */
  #placeOf(least: bigint): number {
    let low = this.#first;
    let high = this.#items.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const index = this.#items[middle]?.item.index;
      if (index !== undefined && index < least) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
