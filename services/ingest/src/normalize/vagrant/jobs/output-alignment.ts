import type { KnownJobs_Job } from "@tapedeck/proto/tapedeck/v1/event";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { type DigestMemory, DigestWindow } from "./digest-window.ts";
import type { MaskedEvent } from "./output-pieces.ts";

/** A terminal event as masked. */
export type OutputPiece = MaskedEvent & { readonly at: Timestamp };

/** An event to record now, and its position. */
export type PlacedOutput = {
  readonly index: number;
  /** The opening of the stream that gave it, and its position there. */
  readonly stream: string;
  readonly offset: number;
  readonly piece: OutputPiece;
};

export type AlignedOutput =
  | { readonly what: "placed"; readonly placed: PlacedOutput }
  /** Events from one position on, and before the next, are unknown. `isAtLeast`: more windows may have moved on unseen. */
  | { readonly what: "missing"; readonly from: number; readonly next: number; readonly isAtLeast: boolean };

export type AlignmentMemory = DigestMemory & Pick<KnownJobs_Job, "stream" | "offset">;

/** Events that a stream gave after `before` others. */
export type StreamEvents = {
  readonly stream: string;
  readonly before: number;
  readonly isReplay: boolean;
  readonly pieces: readonly OutputPiece[];
};

/** `isShort`: the stream gave nothing of what must have been there, or it is there no more. */
export type Completed = { readonly output: readonly AlignedOutput[]; readonly isShort: boolean };

/** The server's buffer: 32 chunks of 164 events. */
export const windowSize = 5_248;

type Opening = {
  readonly stream: string;
  /** Its position in the output if nothing contradicts. */
  readonly base: number;
  /** Its position for certain. */
  start?: number;
  /** The window moved on, once or more often. */
  hasMoved?: boolean;
  held: { readonly offset: number; readonly piece: OutputPiece }[];
};

/**
 * The positions of a job's streamed events in its output, which the events themselves do not have
 * (docs/upstreams/vagrant.md#job-output).
 *
 * A server keeps the events since the last multiple of 5,248, and a stream begins with those (the replay); what
 * follows continues it. So each stream begins at a multiple of that, as a whole: at the one before what is recorded, as
 * long as nothing contradicts; else at the next, and what is between is missing. It is contradicted by an event that
 * differs from the one that is recorded at its position, and by a replay that is shorter than what is recorded. Until
 * that is certain the events of the replay are held; those that are equal to recorded ones come to nothing.
 *
 * A window that moved on by as many events as make no difference can't be distinguished from one that did not, and a
 * window that moved on several times can't be distinguished from one that did so once: what is missing is then the least
 * that can be.
 */
export class OutputAlignment {
  readonly #windowSize: number;
  readonly #digests: DigestWindow;
  #last: { readonly stream: string; readonly offset: number };
  #opening: Opening | undefined;

  constructor(from?: AlignmentMemory, size = windowSize) {
    this.#windowSize = size;
    this.#digests = new DigestWindow(from, size);
    this.#last = { stream: from?.stream ?? "", offset: Number(from?.offset ?? 0n) };
  }

  /** Terminal events that are recorded, or known to be missing. */
  get written(): number {
    return this.#digests.end;
  }

  take({ stream, before, isReplay, pieces }: StreamEvents): readonly AlignedOutput[] {
    const opening = this.#openingOf(stream);
    const output = isReplay ? [] : [...this.#endReplay(opening, before)];
    for (const [index, piece] of pieces.entries()) output.push(...this.#takeOne(opening, before + index, piece));
    return output;
  }

  /** The stream has no more than its first `length` events. */
  complete(stream: string, length: number): Completed {
    const opening = this.#openingOf(stream);
    const isShort = (opening.start ?? opening.base) + length < this.#digests.end;
    const output = opening.held.length > 0 ? this.#endReplay(opening, length) : [];
    return { output, isShort: isShort && output.length === 0 };
  }

  /** Drops what the stream held. Another stream will repeat it. */
  lose(stream: string): void {
    if (this.#opening?.stream === stream) this.#opening = undefined;
  }

  /** Takes in an event read back from the log. */
  recorded({ index, stream, offset }: Omit<PlacedOutput, "piece">, sha256: Uint8Array): void {
    if (index < this.#digests.end) return;
    this.#digests.skipTo(index);
    this.#digests.pushSha256(sha256);
    this.#last = { stream, offset };
    this.#opening = undefined;
  }

  memory(): AlignmentMemory {
    return { ...this.#digests.memory(), stream: this.#last.stream, offset: BigInt(this.#last.offset) };
  }

  #openingOf(stream: string): Opening {
    if (this.#opening?.stream === stream) return this.#opening;
    const written = this.#digests.end;
    const opening: Opening = { stream, base: written - (written % this.#windowSize), held: [] };
    // The stream gave the last recorded event, and the recorder was replaced since.
    if (stream === this.#last.stream) opening.start = written - 1 - this.#last.offset;
    this.#opening = opening;
    return opening;
  }

  #takeOne(opening: Opening, offset: number, piece: OutputPiece): readonly AlignedOutput[] {
    if (opening.start !== undefined) return this.#place(opening, opening.start, offset, piece);
    const index = opening.base + offset;
    if (index >= this.#digests.end) {
      return [...this.#endReplay(opening, offset), ...this.#takeOne(opening, offset, piece)];
    }
    if (this.#isAnother(index, piece)) {
      return [...this.#moveOn(opening), ...this.#takeOne(opening, offset, piece)];
    }
    opening.held.push({ offset, piece });
    return [];
  }

  #place(
    { stream, hasMoved: isAtLeast = false }: Opening,
    start: number,
    offset: number,
    piece: OutputPiece,
  ): readonly AlignedOutput[] {
    const index = start + offset;
    const from = this.#digests.end;
    if (index < from) return [];
    this.#digests.skipTo(index);
    if (piece.identity === undefined) this.#digests.push(piece.bytes);
    else this.#digests.pushSha256(piece.identity);
    this.#last = { stream, offset };
    const placed: AlignedOutput = { what: "placed", placed: { index, stream, offset, piece } };
    return index === from ? [placed] : [{ what: "missing", from, next: index, isAtLeast }, placed];
  }

  /** By its bytes before masking, and by its masked ones where they were recorded without a hash, or with another key. */
  #isAnother(index: number, { bytes, alone = bytes, rawHashes }: OutputPiece): boolean {
    if (!this.#digests.differs(index, bytes) || !this.#digests.differs(index, alone)) return false;
    return rawHashes?.().every((sha256) => this.#digests.differsFrom(index, sha256)) ?? true;
  }

  /** The window has moved on: the held events belong to the next one. */
  #moveOn(opening: Opening): readonly AlignedOutput[] {
    const start = opening.base + this.#windowSize;
    const { held } = opening;
    opening.start = start;
    opening.hasMoved = true;
    opening.held = [];
    return held.flatMap(({ offset, piece }) => this.#place(opening, start, offset, piece));
  }

  /** The replay is over, with `length` events. */
  #endReplay(opening: Opening, length: number): readonly AlignedOutput[] {
    if (opening.start !== undefined) return [];
    if (opening.base + length < this.#digests.end) return this.#moveOn(opening);
    opening.start = opening.base;
    opening.held = [];
    return [];
  }
}
