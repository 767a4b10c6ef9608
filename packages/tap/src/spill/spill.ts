import type { Dropped, Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import { payloadOf } from "../push/pieces.ts";
import type { TapItem } from "../tap.ts";
import {
  readSegment,
  removeSegment,
  type Segment,
  type SegmentPosition,
  type SegmentWriter,
  syncSegment,
  writeSegment,
} from "./segment.ts";
import {
  leaveSpillFolder,
  readSpillFolder,
  removeSpillFolder,
  segmentPath,
  type TapIdentity,
  writeTapFile,
} from "./spill-folder.ts";

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

/**
 * The ordered, acknowledged store between a tap and its recorder. Items stay in memory up to a limit, then go to files up
 * to another limit, and are dropped and counted beyond that. Each item is kept until it is committed. The oldest go to disk
 * first, so that a crash loses the newest, which the upstream then repeats after the rest, in order.
 */
export type Spill = AsyncDisposable & {
  readonly hello: () => TapIdentity;
  /** Pushes the items under another name from now on (the project was taken). */
  readonly rename: (hello: TapIdentity) => void;
  /** Takes an item at once and gives its index (1, 2, 3 …); undefined if the item was dropped. */
  readonly append: (item: TapItem) => bigint | undefined;
  /** Items from an index on, including later ones, until the signal aborts. Skips committed items. */
  readonly read: (from: bigint, signal: AbortSignal) => AsyncGenerator<Item, void>;
  /** The recorder has everything up to and including this index. */
  readonly commit: (index: bigint) => void;
  /** Resolves when every appended item is committed, or when the signal aborts. */
  readonly drained: (signal: AbortSignal) => Promise<void>;
  /** Writes every uncommitted item to disk, safe from power loss. Throws if the disk is full. */
  readonly persist: () => void;
  readonly state: () => SpillState;
  /** True if no item was appended after this index. */
  readonly isLast: (index: bigint) => boolean;
};

export type SpillState = {
  /** The index of the first item that is still kept, or of the next item. */
  readonly firstIndex: bigint;
  readonly nextIndex: bigint;
  readonly committed: bigint;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  /** The number of frames dropped so far. */
  readonly dropped: bigint;
};

const MiB = 1024 * 1024;

/** Rejects if the folder can't be read, or if it is missing and no hello is given. */
export async function openSpill(options: SpillOptions): Promise<Spill> {
  const { dir, memoryBytes = 64 * MiB, diskBytes = 1024 * MiB, segmentBytes = 8 * MiB } = options;
  const found = await readSpillFolder(dir);
  const identity = found?.hello ?? options.hello;
  if (identity === undefined) throw new Error(`${dir} holds no spill`);
  let hello = identity;
  const to = found === undefined ? options.to : found.to;

  // Ordered by index.
  const memory = new Map<bigint, { readonly item: Item; readonly bytes: number }>();
  const segments: Segment[] = [...(found?.segments ?? [])];
  const dropped = new Map<string, { count: bigint; bytes: bigint; connection: string; at: Item["at"] }>();
  let writer: SegmentWriter | undefined;
  let hasFolder = false;
  let inMemory = 0;
  let droppedCount = 0n;
  let committed = found?.committed ?? 0n;
  let nextIndex = (segments.at(-1)?.last ?? committed) + 1n;
  let wake = Promise.withResolvers<void>();
  markGaps();
  if (found !== undefined) claim();

  /** Items that a crash lost from memory are unknown. One item in their place marks the gap. */
  function markGaps(): void {
    let expected = committed + 1n;
    for (const { first, last } of segments) {
      if (first > expected) storeInMemory(lost(first - 1n, "crash"), overheadBytes);
      expected = last + 1n;
    }
  }

  function claim(): void {
    writeTapFile(dir, { hello, to, committed });
    hasFolder = true;
  }

  /** Need not succeed: without the note some items are pushed twice, which changes nothing. */
  function noteCommitted(): void {
    try {
      claim();
    } catch {
      // The disk is full.
    }
  }

  function storeInMemory(item: Item, bytes: number): void {
    memory.set(item.index, { item, bytes });
    inMemory += bytes;
  }

  function diskUsed(): number {
    return segments.reduce((sum, { bytes }) => sum + bytes, writer?.segment().bytes ?? 0);
  }

  function writeToDisk(item: Item): void {
    if (!hasFolder) claim();
    if (writer !== undefined) {
      const { last, bytes } = writer.segment();
      if (last + 1n !== item.index || bytes >= segmentBytes) closeWriter();
    }
    writer ??= writeSegment(segmentPath(dir, item.index), item.index);
    writer.append(item);
  }

  function closeWriter(): void {
    if (writer === undefined) return;
    const segment = writer.segment();
    writer.close();
    writer = undefined;
    if (segment.bytes === 0) removeSegment(segment);
    else segments.splice(segments.findLastIndex(({ first }) => first < segment.first) + 1, 0, segment);
  }

  /** False if there is no room for the item. */
  function store(item: Item, bytes: number): boolean {
    if (!makeRoom(bytes)) return false;
    if (fitsInMemory(bytes)) storeInMemory(item, bytes);
    else return moveToDisk(item, bytes);
    return true;
  }

  /** Moves the oldest items to disk until memory has this much room, or is empty. */
  function makeRoom(bytes: number): boolean {
    for (const [index, held] of memory) {
      if (fitsInMemory(bytes)) return true;
      if (!moveToDisk(held.item, held.bytes)) return false;
      memory.delete(index);
      inMemory -= held.bytes;
    }
    return fitsInMemory(bytes) || diskUsed() + bytes <= diskBytes;
  }

  /** False when the disk or the spill's share of it is full. */
  function moveToDisk(item: Item, bytes: number): boolean {
    if (diskUsed() + bytes > diskBytes) return false;
    try {
      writeToDisk(item);
      return true;
    } catch (cause) {
      // The folder was removed. It is made again with the next item.
      if ((cause as NodeJS.ErrnoException).code === "ENOENT") hasFolder = false;
      return false;
    }
  }

  function add(item: TapItem, mayDrop: boolean): bigint | undefined {
    const index = nextIndex;
    const bytes = sizeOf(item);
    const numbered = { ...item, index };
    if (!store(numbered, bytes)) {
      if (mayDrop) return undefined;
      storeInMemory(numbered, bytes);
    }
    nextIndex++;
    wakeReaders();
    return index;
  }

  function fitsInMemory(bytes: number): boolean {
    return inMemory + bytes <= memoryBytes;
  }

  /** True when enough space is free to report the drops. Otherwise more drops would soon follow. */
  function hasFreed(): boolean {
    return inMemory <= memoryBytes / 2 || diskUsed() + overheadBytes <= diskBytes;
  }

  function countDrop(item: TapItem, channel: string, bytes: number): void {
    const before = dropped.get(channel);
    const { connection, at } = item;
    dropped.set(channel, {
      count: (before?.count ?? 0n) + 1n,
      bytes: (before?.bytes ?? 0n) + BigInt(bytes),
      connection,
      at,
    });
    droppedCount++;
  }

  function appendDrops(): void {
    for (const [channel, { count, bytes, connection, at }] of dropped) {
      const value: Dropped = { channel, count, bytes, reason: "spill_full" };
      add({ connection, at, what: { $case: "dropped", value } }, false);
    }
    dropped.clear();
  }

  function wakeReaders(): void {
    wake.resolve();
    wake = Promise.withResolvers();
  }

  function segmentOf(index: bigint): Segment | undefined {
    const open = writer?.segment();
    if (open !== undefined && open.first <= index && index <= open.last) return open;
    return segments.find(({ first, last }) => first <= index && index <= last);
  }

  function firstFrom(index: bigint): bigint {
    const inMemoryFirst = firstKeyFrom(memory, index) ?? nextIndex;
    const onDisk = [...segments, ...(writer === undefined ? [] : [writer.segment()])];
    const firsts = onDisk.filter(({ last }) => last >= index).map(({ first }) => (first < index ? index : first));
    return firsts.concat(inMemoryFirst).sort((a, b) => (a < b ? -1 : 1))[0] ?? nextIndex;
  }

  async function* read(from: bigint, signal: AbortSignal): AsyncGenerator<Item, void> {
    signal.addEventListener("abort", wakeReaders);
    try {
      let position: { readonly path: string; readonly next: SegmentPosition } | undefined;
      for (let next = from; !signal.aborted; ) {
        if (next <= committed) next = committed + 1n;
        const inMemoryItem = memory.get(next);
        const segment = inMemoryItem === undefined ? segmentOf(next) : undefined;
        if (inMemoryItem !== undefined) {
          next++;
          yield inMemoryItem.item;
        } else if (segment !== undefined) {
          const start =
            position?.path === segment.path && position.next.index <= next ? position.next : { index: next, offset: 0 };
          const before = next;
          for await (const read of readUnlessRemoved(segment, { ...start, index: next })) {
            next = read.item.index + 1n;
            position = { path: segment.path, next: read.next };
            yield read.item;
            if (signal.aborted) return;
          }
          // The segment is damaged.
          if (next === before && next > committed) {
            yield lost(segment.last, "damaged", segment.last - next + 1n);
            next = segment.last + 1n;
          }
        } else if (next < nextIndex) {
          next = firstFrom(next);
        } else {
          await wake.promise;
        }
      }
    } finally {
      signal.removeEventListener("abort", wakeReaders);
    }
  }

  function commit(index: bigint): void {
    if (index <= committed) return;
    for (const [held, { bytes }] of memory) {
      if (held > index) break;
      memory.delete(held);
      inMemory -= bytes;
    }
    committed = index;
    // After a crash the recorder may have more of this tap than the spill.
    if (nextIndex <= index) nextIndex = index + 1n;
    if (writer !== undefined && writer.segment().last <= index) closeWriter();
    const done = segments.filter(({ last }) => last <= index);
    segments.splice(0, done.length);
    for (const segment of done) removeSegment(segment);
    if (done.length > 0) noteCommitted();
    if (dropped.size > 0 && hasFreed()) appendDrops();
    wakeReaders();
  }

  function isDrained(): boolean {
    return committed >= nextIndex - 1n && dropped.size === 0;
  }

  return {
    hello: () => hello,
    rename: (name) => {
      hello = name;
      if (hasFolder) claim();
    },
    read,
    commit,
    append: (item) => {
      const frame = item.what?.$case === "frame" ? item.what.value : undefined;
      const bytes = sizeOf(item);
      if (frame !== undefined && !makeRoom(bytes)) {
        countDrop(item, frame.channel, frame.bytes.length);
        return undefined;
      }
      if (dropped.size > 0) appendDrops();
      const index = add(item, frame !== undefined);
      if (index === undefined && frame !== undefined) countDrop(item, frame.channel, frame.bytes.length);
      return index;
    },
    drained: async (signal) => {
      signal.addEventListener("abort", wakeReaders);
      while (!isDrained() && !signal.aborted) await wake.promise;
      signal.removeEventListener("abort", wakeReaders);
    },
    persist: () => {
      if (dropped.size > 0) appendDrops();
      if (isDrained()) return;
      claim();
      closeWriter();
      for (const [index, { item, bytes }] of memory) {
        writeToDisk(item);
        memory.delete(index);
        inMemory -= bytes;
      }
      closeWriter();
      for (const segment of segments) syncSegment(segment);
    },
    state: () => ({
      ...{ nextIndex, committed, firstIndex: firstFrom(committed + 1n) },
      ...{ memoryBytes: inMemory, diskBytes: diskUsed(), dropped: droppedCount },
    }),
    isLast: (index) => index >= nextIndex - 1n,
    [Symbol.asyncDispose]: async () => {
      closeWriter();
      if (hasFolder && segments.length === 0) removeSpillFolder(dir);
      leaveSpillFolder(dir);
    },
  };
}

/** Stands for lost items, of which only the last index is known. */
function lost(index: bigint, reason: string, count = 0n): Item {
  const value: Dropped = { channel: "", count, bytes: 0n, reason };
  return { index, connection: "", at: undefined, what: { $case: "dropped", value } };
}

/** A segment is removed when it is committed, possibly while it is read. */
async function* readUnlessRemoved(segment: Segment, from: SegmentPosition) {
  try {
    yield* readSegment(segment, from);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "ENOENT") throw cause;
  }
}

function firstKeyFrom(inOrder: ReadonlyMap<bigint, unknown>, least: bigint): bigint | undefined {
  for (const key of inOrder.keys()) if (key >= least) return key;
  return undefined;
}

/** The approximate size of an item without its payload. */
const overheadBytes = 256;

function sizeOf(item: TapItem): number {
  return overheadBytes + (payloadOf(item)?.bytes.length ?? 0);
}
