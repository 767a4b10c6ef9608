import { hash } from "node:crypto";
import type { KnownJobs_Job } from "@tapedeck/proto/tapedeck/v1/event";
import type { Moment } from "@tapedeck/shared/time/moment";
import type { MaskedEvent } from "./output-pieces.ts";

/** A terminal event as masked. */
export type Piece = MaskedEvent & { readonly at: Moment };

/** To be recorded, now and at this place. */
export type Placed = {
  readonly index: number;
  /** The opening of the stream that gave it, and its place there. */
  readonly stream: string;
  readonly offset: number;
  readonly piece: Piece;
};

/** Nobody knows what stood there: from one place on, and before the next. */
export type Missing = { readonly from: number; readonly next: number };

export type Step = { readonly missing: Missing } | { readonly placed: Placed };

export type OutputMemory = Pick<KnownJobs_Job, "written" | "digests" | "digests_from" | "stream" | "offset">;

/**
 * Where the events of a job's streams stand in its output, which only their position tells
 * (docs/upstreams/vagrant.md#job-output).
 *
 * A server keeps the events since the last multiple of 5,248, and a stream begins with those (the replay); what
 * follows continues it. So each stream stands at a multiple of that, as a whole: at the one before what is recorded, as
 * long as nothing contradicts; else at the next, and what is between is missing. It is contradicted by an event that
 * differs from the one that is recorded at its place, and by a replay that is shorter than what is recorded. Until that
 * is certain the events of the replay are held; those that are equal to recorded ones come to nothing.
 *
 * A window that moved on by as many events as make no difference can't be told from one that did not.
 */
export type OutputAlignment = {
  /** Terminal events that are recorded, or known to be missing. */
  readonly written: () => number;
  /** `before`: events that the stream gave before these. */
  readonly take: (given: Given) => readonly Step[];
  /** The stream has no more than its first `length` events. */
  readonly complete: (stream: string, length: number) => Completed;
  /** Whatever it held is lost with it; another stream will repeat it. */
  readonly lose: (stream: string) => void;
  /** An event read back from the log. */
  readonly recorded: (at: Omit<Placed, "piece">, sha256: Uint8Array) => void;
  readonly memory: () => OutputMemory;
};

export type Given = {
  readonly stream: string;
  readonly before: number;
  readonly isReplay: boolean;
  readonly pieces: readonly Piece[];
};

/** `isShort`: it gave nothing of what must have been there, or it is there no more. */
export type Completed = { readonly steps: readonly Step[]; readonly isShort: boolean };

/** The server's buffer: 32 chunks of 164 events. */
export const windowSize = 5_248;
const digestSize = 16;

type Opening = {
  readonly stream: string;
  /** Where it stands if nothing contradicts. */
  readonly base: number;
  /** Where it stands for certain. */
  start?: number;
  held: { readonly offset: number; readonly piece: Piece }[];
};

export function outputAlignment(from?: OutputMemory, size = windowSize): OutputAlignment {
  const digests = digestWindow(from, size);
  let last = { stream: from?.stream ?? "", offset: Number(from?.offset ?? 0n) };
  let opening: Opening | undefined;

  function openingOf(stream: string): Opening {
    if (opening?.stream === stream) return opening;
    const written = digests.end();
    opening = { stream, base: written - (written % size), held: [] };
    // It gave the last one, before whoever remembered that was replaced.
    if (stream === last.stream) opening.start = written - 1 - last.offset;
    return opening;
  }

  function place(opened: Opening, start: number, offset: number, piece: Piece): readonly Step[] {
    const index = start + offset;
    const from = digests.end();
    if (index < from) return [];
    digests.skipTo(index);
    digests.push(digestOf(piece.bytes));
    last = { stream: opened.stream, offset };
    const placed: Step = { placed: { index, stream: opened.stream, offset, piece } };
    return index === from ? [placed] : [{ missing: { from, next: index } }, placed];
  }

  /** The window has moved on: what was held stands in the next one. */
  function moveOn(opened: Opening): readonly Step[] {
    const start = opened.base + size;
    const { held } = opened;
    opened.start = start;
    opened.held = [];
    return held.flatMap(({ offset, piece }) => place(opened, start, offset, piece));
  }

  /** The replay is over: it had so many events. */
  function endReplay(opened: Opening, length: number): readonly Step[] {
    if (opened.start !== undefined) return [];
    if (opened.base + length < digests.end()) return moveOn(opened);
    opened.start = opened.base;
    opened.held = [];
    return [];
  }

  function takeOne(opened: Opening, offset: number, piece: Piece): readonly Step[] {
    if (opened.start !== undefined) return place(opened, opened.start, offset, piece);
    const index = opened.base + offset;
    if (index >= digests.end()) return [...endReplay(opened, offset), ...takeOne(opened, offset, piece)];
    const { bytes, alone = bytes } = piece;
    if (digests.differs(index, bytes) && digests.differs(index, alone))
      return [...moveOn(opened), ...takeOne(opened, offset, piece)];
    opened.held.push({ offset, piece });
    return [];
  }

  return {
    written: digests.end,
    take({ stream, before, isReplay, pieces }) {
      const opened = openingOf(stream);
      const steps = isReplay ? [] : [...endReplay(opened, before)];
      for (const [index, piece] of pieces.entries()) steps.push(...takeOne(opened, before + index, piece));
      return steps;
    },
    complete(stream, length) {
      const opened = openingOf(stream);
      const isShort = (opened.start ?? opened.base) + length < digests.end();
      const steps = opened.held.length > 0 ? endReplay(opened, length) : [];
      return { steps, isShort: isShort && steps.length === 0 };
    },
    lose(stream) {
      if (opening?.stream === stream) opening = undefined;
    },
    recorded({ index, stream, offset }, sha256) {
      if (index < digests.end()) return;
      digests.skipTo(index);
      digests.push(Buffer.from(sha256).subarray(0, digestSize));
      last = { stream, offset };
      opening = undefined;
    },
    memory: () => ({ ...digests.memory(), stream: last.stream, offset: BigInt(last.offset) }),
  };
}

function digestOf(bytes: Uint8Array): Buffer {
  return hash("sha256", bytes, "buffer").subarray(0, digestSize);
}

/** Digests of what is recorded in the window that is being filled, as far back as nothing is missing. */
function digestWindow(from: Pick<OutputMemory, "written" | "digests"> | undefined, windowed: number) {
  let end = Number(from?.written ?? 0n);
  let bytes: Buffer = Buffer.from(from?.digests ?? []);
  let start = end - Math.floor(bytes.length / digestSize);

  function clear(): void {
    start = end;
    bytes = Buffer.alloc(0);
  }

  function grown(size: number): Buffer {
    const larger = Buffer.alloc(Math.min(Math.max(size * 2, 16 * digestSize), windowed * digestSize));
    bytes.copy(larger);
    return larger;
  }

  return {
    /** Where the next one stands. */
    end: () => end,
    skipTo(index: number) {
      if (index === end) return;
      end = index;
      clear();
    },
    push(digest: Buffer) {
      const at = (end - start) * digestSize;
      if (at + digestSize > bytes.length) bytes = grown(at + digestSize);
      digest.copy(bytes, at);
      end += 1;
      if (end % windowed === 0) clear();
    },
    /** False also where it is not known what stands there. */
    differs(index: number, event: Uint8Array): boolean {
      if (index < start || index >= end) return false;
      const at = (index - start) * digestSize;
      return digestOf(event).compare(bytes, at, at + digestSize) !== 0;
    },
    memory: () => ({
      written: BigInt(end),
      digests: Buffer.from(bytes.subarray(0, (end - start) * digestSize)),
      digests_from: BigInt(start),
    }),
  };
}
