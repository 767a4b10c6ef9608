import type { Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import { removeSegment, type Segment, type SegmentWriter, syncSegment, writeSegment } from "./segment.ts";
import {
  leaveSpillFolder,
  removeSpillFolder,
  type SpillOwner,
  segmentPath,
  type TapIdentity,
  writeTapFile,
} from "./spill-folder.ts";

export type SpillDiskOptions = {
  readonly dir: string;
  readonly segmentBytes: number;
  readonly owner: SpillOwner;
  /** The folder's existing segments; undefined if there is no folder. */
  readonly segments: readonly Segment[] | undefined;
};

/** The folder of one spill: segments of items, and the note of whose they are. */
export class SpillDisk {
  readonly #dir: string;
  readonly #segmentBytes: number;
  /** In order. */
  readonly #segments: Segment[];
  #owner: SpillOwner;
  #writer: SegmentWriter | undefined;
  #hasFolder = false;

  constructor({ dir, segmentBytes, owner, segments }: SpillDiskOptions) {
    this.#dir = dir;
    this.#segmentBytes = segmentBytes;
    this.#owner = owner;
    this.#segments = [...(segments ?? [])];
    if (segments !== undefined) this.claim();
  }

  get hello(): TapIdentity {
    return this.#owner.hello;
  }

  /** Everything up to and including this index is committed. */
  get committed(): bigint {
    return this.#owner.committed;
  }

  /** In bytes. */
  get used(): number {
    return this.#segments.reduce((sum, { bytes }) => sum + bytes, this.#writer?.segment().bytes ?? 0);
  }

  /** Writes into the folder whose items it holds, so that no other process takes them. Throws if the disk is full. */
  claim(): void {
    writeTapFile(this.#dir, this.#owner);
    this.#hasFolder = true;
  }

  rename(hello: TapIdentity): void {
    this.#owner = { ...this.#owner, hello };
    if (this.#hasFolder) this.claim();
  }

  /** Throws if the disk is full. */
  write(item: Item): void {
    if (!this.#hasFolder) this.claim();
    if (this.#writer !== undefined) {
      const { last, bytes } = this.#writer.segment();
      if (last + 1n !== item.index || bytes >= this.#segmentBytes) this.closeSegment();
    }
    this.#writer ??= writeSegment(segmentPath(this.#dir, item.index), item.index);
    this.#writer.append(item);
  }

  /** False if the disk is full. */
  tryWrite(item: Item): boolean {
    try {
      this.write(item);
      return true;
    } catch (cause) {
      // The folder was removed. It is made again with the next item.
      if ((cause as NodeJS.ErrnoException).code === "ENOENT") this.#hasFolder = false;
      return false;
    }
  }

  /** Later items go to a new segment. */
  closeSegment(): void {
    if (this.#writer === undefined) return;
    const segment = this.#writer.segment();
    this.#writer.close();
    this.#writer = undefined;
    if (segment.bytes === 0) removeSegment(segment);
    else this.#segments.splice(this.#segments.findLastIndex(({ first }) => first < segment.first) + 1, 0, segment);
  }

  segmentOf(index: bigint): Segment | undefined {
    const open = this.#writer?.segment();
    if (open !== undefined && open.first <= index && index <= open.last) return open;
    return this.#segments.find(({ first, last }) => first <= index && index <= last);
  }

  /** The smallest index from this one on. */
  indexFrom(least: bigint): bigint | undefined {
    const open = this.#writer?.segment();
    const ends = (open === undefined ? this.#segments : [...this.#segments, open]).filter(({ last }) => last >= least);
    const firsts = ends.map(({ first }) => (first < least ? least : first));
    return firsts.sort((a, b) => (a < b ? -1 : 1))[0];
  }

  /** Removes the segments whose items are all committed. */
  commit(index: bigint): void {
    this.#owner = { ...this.#owner, committed: index };
    if (this.#writer !== undefined && this.#writer.segment().last <= index) this.closeSegment();
    const done = this.#segments.filter(({ last }) => last <= index);
    this.#segments.splice(0, done.length);
    for (const segment of done) removeSegment(segment);
    if (done.length > 0) this.#noteCommitted();
  }

  /** Makes what is written safe from power loss. */
  sync(): void {
    this.closeSegment();
    for (const segment of this.#segments) syncSegment(segment);
  }

  /** Leaves the folder to other processes, or removes it if it holds nothing. */
  leave(): void {
    this.closeSegment();
    if (this.#hasFolder && this.#segments.length === 0) removeSpillFolder(this.#dir);
    leaveSpillFolder(this.#dir);
  }

  /** Need not succeed: without the note some items are pushed twice, which changes nothing. */
  #noteCommitted(): void {
    try {
      this.claim();
    } catch {
      // The disk is full.
    }
  }
}
