import { closeSync, fsyncSync, openSync, rmSync, writeSync } from "node:fs";
import { open } from "node:fs/promises";
import { crc32 } from "node:zlib";
import { Item } from "@tapedeck/proto/tapedeck/v1/recorder";

/**
 * A file of items with consecutive indexes. Each record is its length (u32, little-endian),
 * the CRC-32 of what follows (u32), and the item as protobuf. The last record of a crashed process may be torn.
 */
export type Segment = { readonly path: string; readonly first: bigint; readonly last: bigint; readonly bytes: number };

/** Writes a segment. Writes are synchronous: the operating system has the item when `append` returns. */
export type SegmentWriter = {
  readonly segment: () => Segment;
  /** Takes only the item with the next index. Throws if the disk does not take it; the file then ends before the item. */
  readonly append: (item: Item) => void;
  readonly close: () => void;
};

const headerBytes = 8;

export function writeSegment(path: string, first: bigint): SegmentWriter {
  const file = openSync(path, "w", 0o600);
  let bytes = 0;
  let last = first - 1n;
  return {
    segment: () => ({ path, first, last, bytes }),
    append: (item) => {
      const record = encodeRecord(item);
      for (let written = 0; written < record.length; ) {
        // A short write that then fails leaves half a record. The next record overwrites it, because it has the same position.
        written += writeSync(file, record, written, record.length - written, bytes + written);
      }
      bytes += record.length;
      last = item.index;
    },
    close: () => closeSync(file),
  };
}

export type SegmentPosition = { readonly index: bigint; readonly offset: number };

/** The most that is read together. */
type Max = { readonly items: number; readonly bytes: number };

/**
 * Items from a position on, in order and in arrays, up to the given end of the segment; fewer if the file is damaged. An
 * array has as many as fit, and one at least. `next`: the position after it.
 */
export async function* readSegment(
  segment: Segment,
  from: SegmentPosition,
  max: Max,
): AsyncGenerator<{ readonly items: readonly Item[]; readonly next: SegmentPosition }> {
  await using file = await open(segment.path, "r");
  let { offset } = from;
  let items: Item[] = [];
  let bytes = 0;
  const taken = () => {
    const read = { items, next: { index: (items.at(-1)?.index ?? 0n) + 1n, offset } };
    items = [];
    bytes = 0;
    return read;
  };
  for (let rest: Buffer = Buffer.alloc(0), readTo = offset; offset < segment.bytes; ) {
    const needed = rest.length < headerBytes ? headerBytes : headerBytes + rest.readUInt32LE(0);
    if (rest.length < needed) {
      const length = Math.min(Math.max(chunkBytes, needed - rest.length), segment.bytes - readTo);
      const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(length), 0, length, readTo);
      if (bytesRead === 0) break;
      readTo += bytesRead;
      rest = Buffer.concat([rest, buffer.subarray(0, bytesRead)]);
      continue;
    }
    const item = decodeRecord(rest.subarray(0, needed));
    if (item === undefined) break;
    if (items.length > 0 && (items.length >= max.items || bytes + needed > max.bytes)) yield taken();
    rest = rest.subarray(needed);
    offset += needed;
    if (item.index < from.index) continue;
    items.push(item);
    bytes += needed;
  }
  if (items.length > 0) yield taken();
}

const chunkBytes = 1024 * 1024;

/** The readable beginning of a file as a segment; undefined if no record can be read. */
export async function inspectSegment(path: string): Promise<Segment | undefined> {
  await using file = await open(path, "r");
  const { size } = await file.stat();
  let found: Segment | undefined;
  for await (const { items, next } of readSegment(
    { path, first: 0n, last: 0n, bytes: size },
    { index: 0n, offset: 0 },
    { items: 1, bytes: 0 },
  )) {
    const [{ index } = { index: 0n }] = items;
    if (found !== undefined && index !== found.last + 1n) break;
    found = { path, first: found?.first ?? index, last: index, bytes: next.offset };
  }
  return found;
}

/** Flushes the segment from the operating system's caches to the disk. */
export function syncSegment({ path }: Segment): void {
  const file = openSync(path, "r+");
  fsyncSync(file);
  closeSync(file);
}

export function removeSegment({ path }: Segment): void {
  rmSync(path, { force: true });
}

function encodeRecord(item: Item): Buffer {
  const payload = Item.encode(item).finish();
  const record = Buffer.allocUnsafe(headerBytes + payload.length);
  record.writeUInt32LE(payload.length, 0);
  record.writeUInt32LE(crc32(payload), 4);
  record.set(payload, headerBytes);
  return record;
}

function decodeRecord(record: Buffer): Item | undefined {
  const payload = record.subarray(headerBytes);
  if (crc32(payload) !== record.readUInt32LE(4)) return undefined;
  try {
    return Item.decode(payload);
  } catch {
    return undefined;
  }
}
