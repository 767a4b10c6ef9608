import type { Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import { HeldItems } from "./held-items.ts";
import { lost, overheadBytes } from "./items.ts";
import type { Segment } from "./segment.ts";
import type { SpillDisk } from "./spill-disk.ts";

export type Bounds = { readonly memoryBytes: number; readonly diskBytes: number };

/** The items that a spill keeps: in memory up to a bound, beyond that the oldest on disk up to another. */
export class KeptItems {
  readonly #bounds: Bounds;
  readonly #memory = new HeldItems();
  readonly #disk: SpillDisk;

  /** `found`: the segments that the disk has already. */
  constructor(bounds: Bounds, disk: SpillDisk, found: readonly Segment[]) {
    this.#bounds = bounds;
    this.#disk = disk;
    // Items that a crash lost from memory are unknown. One item in their place marks the gap.
    let expected = disk.committed + 1n;
    for (const { first, last } of found) {
      if (first > expected) this.#memory.add(lost(first - 1n, "crash"), overheadBytes);
      expected = last + 1n;
    }
  }

  get memoryBytes(): number {
    return this.#memory.bytes;
  }

  /** False if there is no room for the item. */
  add(item: Item, bytes: number): boolean {
    if (!this.makeRoom(bytes)) return false;
    if (!this.#fitsInMemory(bytes)) return this.#moveToDisk(item, bytes);
    this.#memory.add(item, bytes);
    return true;
  }

  /** Takes the item into memory whether there is room or not. */
  addToMemory(item: Item, bytes: number): void {
    this.#memory.add(item, bytes);
  }

  /** Moves the oldest items to disk until memory has this much room, or is empty. False if there is none. */
  makeRoom(bytes: number): boolean {
    while (!this.#fitsInMemory(bytes)) {
      const oldest = this.#memory.first;
      if (oldest === undefined) return this.#fitsOnDisk(bytes);
      if (!this.#moveToDisk(oldest.item, oldest.bytes)) return false;
      this.#memory.removeFirst();
    }
    return true;
  }

  /** True when enough space is free to report drops. Otherwise more drops would soon follow. */
  get hasFreed(): boolean {
    return this.#memory.bytes <= this.#bounds.memoryBytes / 2 || this.#fitsOnDisk(overheadBytes);
  }

  /** The item with this index, and those in memory that follow it without a hole. Empty if it is not in memory. */
  inMemory(index: bigint, max: { readonly items: number; readonly bytes: number }): readonly Item[] {
    return this.#memory.run(index, max);
  }

  /** The smallest index from this one on. */
  indexFrom(least: bigint): bigint | undefined {
    const inMemory = this.#memory.indexFrom(least);
    const onDisk = this.#disk.indexFrom(least);
    return inMemory === undefined || (onDisk !== undefined && onDisk < inMemory) ? onDisk : inMemory;
  }

  commit(index: bigint): void {
    const memory = this.#memory;
    for (let oldest = memory.first; oldest !== undefined && oldest.item.index <= index; oldest = memory.first) {
      memory.removeFirst();
    }
    this.#disk.commit(index);
  }

  /** Writes everything to disk, safe from power loss. Throws if the disk is full. */
  persist(): void {
    this.#disk.claim();
    this.#disk.closeSegment();
    for (let oldest = this.#memory.first; oldest !== undefined; oldest = this.#memory.first) {
      this.#disk.write(oldest.item);
      this.#memory.removeFirst();
    }
    this.#disk.sync();
  }

  /** False when the disk or the spill's share of it is full. */
  #moveToDisk(item: Item, bytes: number): boolean {
    return this.#fitsOnDisk(bytes) && this.#disk.tryWrite(item);
  }

  #fitsInMemory(bytes: number): boolean {
    return this.#memory.bytes + bytes <= this.#bounds.memoryBytes;
  }

  #fitsOnDisk(bytes: number): boolean {
    return this.#disk.used + bytes <= this.#bounds.diskBytes;
  }
}
