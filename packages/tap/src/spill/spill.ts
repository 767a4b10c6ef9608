import type { Dropped, Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import { payloadOf } from "../push/pieces.ts";
import type { TapItem } from "../tap.ts";
import {
  type Place,
  readSegment,
  removeSegment,
  type Segment,
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
  /** A folder of this tap's own; made when something has to go to disk. One that is there already is gone on with. */
  readonly dir: string;
  /** Not needed where the folder is there. */
  readonly hello?: TapIdentity;
  /** Which Tapedeck its items are meant for; what a folder says that is there already counts more. */
  readonly to?: string | undefined;
  /** Default 64 MiB. */
  readonly memoryBytes?: number;
  /** Default 1 GiB. */
  readonly diskBytes?: number;
  /** Default 8 MiB; space on disk is freed by whole files. */
  readonly segmentBytes?: number;
};

/**
 * The ordered, acknowledged store between a tap and who records it: items in memory, past a bound in files, past
 * another bound dropped and counted. Holds each item until it is committed. The oldest go to disk first, so that a crash
 * takes the newest, which the upstream then repeats behind what is left, in order.
 */
export type Spill = AsyncDisposable & {
  readonly hello: () => TapIdentity;
  /** From here on the items are pushed under another name (the project was taken). */
  readonly rename: (hello: TapIdentity) => void;
  /** Takes an item at once and gives its index (1, 2, 3 …); undefined if it had to be dropped. */
  readonly append: (item: TapItem) => bigint | undefined;
  /** Items from an index on, then those to come; ends with the signal. Leaves out what has been committed. */
  readonly read: (from: bigint, signal: AbortSignal) => AsyncGenerator<Item, void>;
  /** Everything up to and including this index is safe elsewhere. */
  readonly commit: (index: bigint) => void;
  /** Resolves when everything appended so far and until then is committed, or with the signal. */
  readonly drained: (signal: AbortSignal) => Promise<void>;
  /** Brings everything that is not committed to disk, safe from power loss. Throws if the disk is full. */
  readonly persist: () => void;
  readonly state: () => SpillState;
  /** Nothing has been appended after it. */
  readonly isLast: (index: bigint) => boolean;
};

export type SpillState = {
  /** The first item still held, or the next one to come. */
  readonly firstIndex: bigint;
  readonly nextIndex: bigint;
  readonly committed: bigint;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  /** Frames dropped so far. */
  readonly dropped: bigint;
};

const MiB = 1024 * 1024;

/** Rejects if the folder is missing and no hello is given, or can't be read. */
export async function openSpill(options: SpillOptions): Promise<Spill> {
  const { dir, memoryBytes = 64 * MiB, diskBytes = 1024 * MiB, segmentBytes = 8 * MiB } = options;
  const found = await readSpillFolder(dir);
  const identity = found?.hello ?? options.hello;
  if (identity === undefined) throw new Error(`${dir} holds no spill`);
  let hello = identity;
  const to = found === undefined ? options.to : found.to;

  // In the order of their indexes.
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
  markHoles();
  if (found !== undefined) claim();

  /** What a crash took from memory is unknown; one item in its place says that something was there. */
  function markHoles(): void {
    let expected = committed + 1n;
    for (const { first, last } of segments) {
      if (first > expected) keepInMemory(lost(first - 1n, "crash"), overheadBytes);
      expected = last + 1n;
    }
  }

  function claim(): void {
    writeTapFile(dir, { hello, to, committed });
    hasFolder = true;
  }

  /** What is pushed again for want of it adds nothing, so it need not succeed. */
  function noteCommitted(): void {
    try {
      claim();
    } catch {
      // The disk is full.
    }
  }

  function keepInMemory(item: Item, bytes: number): void {
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

  /** False when there is no room for it. */
  function store(item: Item, bytes: number): boolean {
    if (!makeRoom(bytes)) return false;
    if (fitsInMemory(bytes)) keepInMemory(item, bytes);
    else return moveToDisk(item, bytes);
    return true;
  }

  /** Moves the oldest items to disk until memory has that much room, or is empty for what is larger than all of it. */
  function makeRoom(bytes: number): boolean {
    for (const [index, held] of memory) {
      if (fitsInMemory(bytes)) return true;
      if (!moveToDisk(held.item, held.bytes)) return false;
      memory.delete(index);
      inMemory -= held.bytes;
    }
    return fitsInMemory(bytes) || diskUsed() + bytes <= diskBytes;
  }

  /** False when the disk is full, or our part of it. */
  function moveToDisk(item: Item, bytes: number): boolean {
    if (diskUsed() + bytes > diskBytes) return false;
    try {
      writeToDisk(item);
      return true;
    } catch (cause) {
      // Somebody has tidied up: made again with the next item.
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
      keepInMemory(numbered, bytes);
    }
    nextIndex++;
    bump();
    return index;
  }

  function fitsInMemory(bytes: number): boolean {
    return inMemory + bytes <= memoryBytes;
  }

  /** So much that it is worth saying what was dropped: more would soon follow otherwise. */
  function hasFreed(): boolean {
    return inMemory <= memoryBytes / 2 || diskUsed() + overheadBytes <= diskBytes;
  }

  function rememberDrop(item: TapItem, channel: string, bytes: number): void {
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

  function tellDrops(): void {
    for (const [channel, { count, bytes, connection, at }] of dropped) {
      const value: Dropped = { channel, count, bytes, reason: "spill_full" };
      add({ connection, at, what: { $case: "dropped", value } }, false);
    }
    dropped.clear();
  }

  function bump(): void {
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
    signal.addEventListener("abort", bump);
    try {
      let place: { readonly path: string; readonly next: Place } | undefined;
      for (let next = from; !signal.aborted; ) {
        if (next <= committed) next = committed + 1n;
        const held = memory.get(next);
        const segment = held === undefined ? segmentOf(next) : undefined;
        if (held !== undefined) {
          next++;
          yield held.item;
        } else if (segment !== undefined) {
          const start =
            place?.path === segment.path && place.next.index <= next ? place.next : { index: next, offset: 0 };
          const before = next;
          for await (const read of readUnlessRemoved(segment, { ...start, index: next })) {
            next = read.item.index + 1n;
            place = { path: segment.path, next: read.next };
            yield read.item;
            if (signal.aborted) return;
          }
          // Damaged on the disk.
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
      signal.removeEventListener("abort", bump);
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
    // The recorder knows more of this tap than a spill that lived through a crash.
    if (nextIndex <= index) nextIndex = index + 1n;
    if (writer !== undefined && writer.segment().last <= index) closeWriter();
    const done = segments.filter(({ last }) => last <= index);
    segments.splice(0, done.length);
    for (const segment of done) removeSegment(segment);
    if (done.length > 0) noteCommitted();
    if (dropped.size > 0 && hasFreed()) tellDrops();
    bump();
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
        rememberDrop(item, frame.channel, frame.bytes.length);
        return undefined;
      }
      if (dropped.size > 0) tellDrops();
      const index = add(item, frame !== undefined);
      if (index === undefined && frame !== undefined) rememberDrop(item, frame.channel, frame.bytes.length);
      return index;
    },
    drained: async (signal) => {
      signal.addEventListener("abort", bump);
      while (!isDrained() && !signal.aborted) await wake.promise;
      signal.removeEventListener("abort", bump);
    },
    persist: () => {
      if (dropped.size > 0) tellDrops();
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

/** In the place of items of which nothing is known but that they were there; the last of them had this index. */
function lost(index: bigint, reason: string, count = 0n): Item {
  const value: Dropped = { channel: "", count, bytes: 0n, reason };
  return { index, connection: "", at: undefined, what: { $case: "dropped", value } };
}

/** A segment is removed when it is committed, which may be while it is read. */
async function* readUnlessRemoved(segment: Segment, from: Place) {
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

/** What an item without its payload takes, roughly. */
const overheadBytes = 256;

function sizeOf(item: TapItem): number {
  return overheadBytes + (payloadOf(item)?.bytes.length ?? 0);
}
