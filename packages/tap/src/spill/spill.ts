// What lies between a tap and its recorder.
//
//   append() --> memory (64 MiB) --oldest first--> files (1 GiB)      both full: the new item is dropped and counted
//                   \-------- read(from) -----------/                commit(index) frees everything up to it
//
// 1. Items are numbered 1, 2, 3 … and are kept until the recorder has committed them.
// 2. The oldest items in memory go to disk first: a crash loses the newest, which Skaffold repeats (v1, v2).
// 3. What is dropped for lack of room is counted, and an item says so as soon as there is room.
// 4. append() never waits for the recorder: the upstream is read at its own pace.
// Every frame takes this way, also within ingest: it has to be kept until it is acknowledged anyway, and a second way would
// need a second order for frames that come while the spill is emptied. It costs 1.6 % of ingest at most.
import type { Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import { Notifier } from "@tapedeck/shared/sync/notifier";
import type { TapItem } from "../tap.ts";
import { DeferredItems } from "./deferred-items.ts";
import { lost, sizeOf } from "./items.ts";
import { type Bounds, KeptItems } from "./kept-items.ts";
import { readSegment, type Segment, type SegmentPosition } from "./segment.ts";
import { SpillDisk } from "./spill-disk.ts";
import { readSpillFolder, type TapIdentity } from "./spill-folder.ts";

/** Where a spill is, and how large it may become. */
export type SpillOptions = {
  /** The tap's own folder, made when an item has to go to disk. Continues an existing spill. */
  readonly dir: string;
  /** Not needed if the folder exists. */
  readonly hello?: TapIdentity;
  /** The name of the Tapedeck that the items are for. An existing folder's own value takes precedence. */
  readonly to?: string | undefined;
  /** Default 64 MiB. */
  readonly memoryBytes?: number;
  /** Default 1 GiB. */
  readonly diskBytes?: number;
  /** Default 8 MiB. Disk space is freed by whole files. */
  readonly segmentBytes?: number;
};

/** What a spill holds at the moment. */
export type SpillState = {
  /** The index of the first item that is still kept, or of the next item. */
  readonly firstIndex: bigint;
  readonly nextIndex: bigint;
  readonly committed: bigint;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  /** The number of items dropped so far. */
  readonly dropped: bigint;
};

const MiB = 1024 * 1024;

/** The most that is read together. */
const max = { items: 1_000, bytes: 256 * 1024 } as const;

/** Rejects if the folder can't be read, or if it is missing and there is no hello. */
export async function openSpill(options: SpillOptions): Promise<Spill> {
  const { dir, memoryBytes = 64 * MiB, diskBytes = 1024 * MiB, segmentBytes = 8 * MiB } = options;
  const found = await readSpillFolder(dir);
  const hello = found?.hello ?? options.hello;
  if (hello === undefined) throw new Error(`${dir} holds no spill`);
  const owner = found ?? { hello, to: options.to, committed: 0n };
  const segments = found?.segments ?? [];
  const disk = new SpillDisk({ dir, segmentBytes, owner, segments: found?.segments });
  return new Spill({ memoryBytes, diskBytes }, disk, segments);
}

/** The ordered, acknowledged store between a tap and its recorder. */
export class Spill implements AsyncDisposable {
  readonly #stored: KeptItems;
  readonly #disk: SpillDisk;
  readonly #deferred = new DeferredItems();
  #nextIndex: bigint;
  /** Rings when there is more to read, and when more is committed. */
  readonly #changed = new Notifier();

  /** `found`: the segments that the disk has already. */
  constructor(bounds: Bounds, disk: SpillDisk, found: readonly Segment[]) {
    this.#disk = disk;
    this.#stored = new KeptItems(bounds, disk, found);
    this.#nextIndex = (found.at(-1)?.last ?? disk.committed) + 1n;
  }

  hello(): TapIdentity {
    return this.#disk.hello;
  }

  /** Pushes the items under another name from now on (the project was taken). */
  rename(hello: TapIdentity): void {
    this.#disk.rename(hello);
  }

  state(): SpillState {
    const { committed, used: diskBytes } = this.#disk;
    const firstIndex = this.#firstFrom(committed + 1n);
    const { memoryBytes } = this.#stored;
    return { firstIndex, nextIndex: this.#nextIndex, committed, memoryBytes, diskBytes, dropped: this.#deferred.total };
  }

  /**
   * Takes an item at once and gives its index (1, 2, 3 …); undefined if the spill is full: see DeferredItems. Can be passed
   * on alone.
   */
  readonly append = (item: TapItem): bigint | undefined => {
    const bytes = sizeOf(item);
    if (this.#stored.makeRoom(bytes + this.#deferred.bytes)) {
      this.#appendDeferred();
      const index = this.#add(item, bytes);
      if (index !== undefined) return index;
    }
    this.#deferred.take(item);
    return undefined;
  };

  /** Items from an index on, including later ones, until the signal aborts. Skips committed items. */
  async *read(from: bigint, signal: AbortSignal): AsyncGenerator<Item, void> {
    for await (const items of this.readTogether(from, signal)) {
      for (const item of items) if (item.index > this.#disk.committed && !signal.aborted) yield item;
    }
  }

  /** The same in arrays: what is there already comes together, at most 1,000 items and 256 KiB, or one larger item. */
  async *readTogether(from: bigint, signal: AbortSignal): AsyncGenerator<readonly Item[], void> {
    signal.addEventListener("abort", this.#wakeReaders);
    try {
      let position: { readonly path: string; readonly next: SegmentPosition } | undefined;
      for (let next = from; !signal.aborted; ) {
        if (next <= this.#disk.committed) next = this.#disk.committed + 1n;
        const items = this.#stored.inMemory(next, max);
        const segment = items.length === 0 ? this.#disk.segmentOf(next) : undefined;
        if (items.length > 0) {
          next += BigInt(items.length);
          yield items;
        } else if (segment !== undefined) {
          const isFurther = position?.path === segment.path && position.next.index <= next;
          const offset = isFurther ? (position?.next.offset ?? 0) : 0;
          const before = next;
          for await (const read of readUnlessRemoved(segment, { index: next, offset })) {
            ({ index: next } = read.next);
            position = { path: segment.path, next: read.next };
            yield read.items;
            if (signal.aborted) return;
          }
          // The segment is damaged.
          if (next === before && next > this.#disk.committed) {
            yield [lost(segment.last, "damaged", segment.last - next + 1n)];
            next = segment.last + 1n;
          }
        } else if (next < this.#nextIndex) {
          next = this.#firstFrom(next);
        } else {
          await this.#changed.next();
        }
      }
    } finally {
      signal.removeEventListener("abort", this.#wakeReaders);
    }
  }

  /** The recorder has everything up to and including this index. */
  commit(index: bigint): void {
    if (index <= this.#disk.committed) return;
    // After a crash the recorder may have more of this tap than the spill.
    if (this.#nextIndex <= index) this.#nextIndex = index + 1n;
    this.#stored.commit(index);
    if (this.#stored.hasFreed) this.#appendDeferred();
    this.#wakeReaders();
  }

  /** Resolves when every appended item is committed, or when the signal aborts. */
  async drained(signal: AbortSignal): Promise<void> {
    signal.addEventListener("abort", this.#wakeReaders);
    while (!this.#isDrained() && !signal.aborted) await this.#changed.next();
    signal.removeEventListener("abort", this.#wakeReaders);
  }

  /** Writes every uncommitted item to disk, safe from power loss. Throws if the disk is full. */
  persist(): void {
    this.#appendDeferred();
    if (this.#isDrained()) return;
    this.#stored.persist();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disk.leave();
  }

  /** Undefined if there is no room. */
  #add(item: TapItem, bytes: number): bigint | undefined {
    const numbered = { ...item, index: this.#nextIndex };
    return this.#stored.add(numbered, bytes) ? this.#added() : undefined;
  }

  #added(): bigint {
    const index = this.#nextIndex++;
    this.#wakeReaders();
    return index;
  }

  /** There is room for them, or nearly: they are few. */
  #appendDeferred(): void {
    for (const item of this.#deferred.release()) {
      const bytes = sizeOf(item);
      if (this.#add(item, bytes) !== undefined) continue;
      this.#stored.addToMemory({ ...item, index: this.#nextIndex }, bytes);
      this.#added();
    }
  }

  #firstFrom(index: bigint): bigint {
    return this.#stored.indexFrom(index) ?? this.#nextIndex;
  }

  #isDrained(): boolean {
    return this.#disk.committed >= this.#nextIndex - 1n && this.#deferred.isEmpty;
  }

  readonly #wakeReaders = (): void => this.#changed.ring();
}

/** A segment is removed when it is committed, possibly while it is read. */
async function* readUnlessRemoved(segment: Segment, from: SegmentPosition) {
  try {
    yield* readSegment(segment, from, max);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "ENOENT") throw cause;
  }
}
