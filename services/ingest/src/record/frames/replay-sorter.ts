// The order of what an upstream repeats to a new connection.
//
//   connected --> silent --first frame--> holding --200 ms of silence, or a piece of 5 s without repeated frames--> live
//                                          \--a full piece is released, and holding goes on
//   What is held is sorted by (own time, arrival). Live frames pass through.
//
// 1. The same frames at the same times come out in the same order: the caller gives the time, no clock is read.
// 2. What is held is bounded in time, bytes and frames. A full piece is released, sorted within itself.
// 3. A frame without a readable time stays behind the one that it followed.
// What is compared with the order afterwards: docs/decisions/0005-frames-are-known-by-their-bytes.md.
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { compareTimestamps, msBetween } from "@tapedeck/shared/time/timestamp";

/**
 * How long and how much is held before a sorted piece is released. Frames are counted too, because an empty frame has no
 * bytes but takes memory like any other.
 */
const replaySorterLimits = {
  silenceMs: 200,
  pieceMs: 5_000,
  pieceBytes: 64 * 1024 * 1024,
  pieceFrames: 100_000,
} as const;

/** In place of the usual ones. */
export type ReplayTimes = { readonly silenceMs?: number; readonly pieceMs?: number };

export type Sortable = {
  /** The upstream's own time; undefined if it can't be read. */
  readonly timestamp: Timestamp | undefined;
  readonly size: number;
};

type ReplaySorterOptions = Partial<{ [K in keyof typeof replaySorterLimits]: number }> & {
  /** The channel has already finished its repeat. */
  readonly live?: boolean;
};

/** Sorts what a channel repeats after connecting, because a server may send live messages between the repeated ones. */
export class ReplaySorter<T extends Sortable> {
  readonly #limits: { readonly [K in keyof typeof replaySorterLimits]: number };
  #state: "silent" | "holding" | "live";
  #held: T[] = [];
  #bytes = 0;
  #pieceStart: Timestamp | undefined;
  /** When the first message arrived. What is repeated is older. */
  #firstAt: Timestamp | undefined;
  #latest: Timestamp | undefined;

  constructor({ live = false, ...limits }: ReplaySorterOptions = {}) {
    this.#limits = { ...replaySorterLimits, ...limits };
    this.#state = live ? "live" : "silent";
  }

  /** Silent: no message has arrived yet. */
  get state(): "silent" | "holding" | "live" {
    return this.#state;
  }

  /** Takes a message and returns the messages that are due, in order. */
  take(message: T, at: Timestamp): readonly T[] {
    const due = this.advance(at);
    if (this.#state === "live") return [...due, message];
    this.#state = "holding";
    this.#firstAt ??= at;
    this.#held.push(message);
    this.#bytes += message.size;
    this.#latest = at;
    this.#pieceStart = earlier(this.#pieceStart ?? at, at);
    const { pieceBytes, pieceFrames, pieceMs } = this.#limits;
    const isLarge = this.#bytes >= pieceBytes || this.#held.length >= pieceFrames;
    if (!isLarge && msBetween(this.#pieceStart, at) < pieceMs) return [];
    // A server that is never silent would be late by a piece for ever.
    return isLarge || this.#mayRepeat(this.#firstAt) ? this.#releasePiece() : this.release();
  }

  /** Whether what is held has messages from before that time, or of unknown time. */
  #mayRepeat(before: Timestamp): boolean {
    return this.#held.some(({ timestamp }) => timestamp === undefined || compareTimestamps(timestamp, before) <= 0);
  }

  /** Returns the messages that are due because time has passed. */
  advance(at: Timestamp): readonly T[] {
    if (this.#state !== "holding" || this.#latest === undefined) return [];
    // Where the tap's clock was set back, the silence is counted from then: it would last until the clock is there again.
    this.#latest = earlier(this.#latest, at);
    return msBetween(this.#latest, at) < this.#limits.silenceMs ? [] : this.release();
  }

  /** Returns everything held. From now on each message passes through. */
  release(): readonly T[] {
    this.#state = "live";
    return this.#releasePiece();
  }

  #releasePiece(): readonly T[] {
    const sorted = inOrder(this.#held);
    this.#held = [];
    this.#bytes = 0;
    this.#pieceStart = undefined;
    return sorted;
  }
}

function earlier(one: Timestamp, other: Timestamp): Timestamp {
  return compareTimestamps(other, one) < 0 ? other : one;
}

/** Sorts by own time. A message without one stays behind the message that it followed. */
function inOrder<T extends Sortable>(arrived: readonly T[]): readonly T[] {
  let previous: Timestamp | undefined;
  const timed = arrived.map((message) => {
    previous = message.timestamp ?? previous;
    return { message, timestamp: previous };
  });
  // The sort is stable, so equal times stay in the order of arrival.
  timed.sort((a, b) =>
    a.timestamp === undefined || b.timestamp === undefined
      ? Number(a.timestamp !== undefined) - Number(b.timestamp !== undefined)
      : compareTimestamps(a.timestamp, b.timestamp),
  );
  return timed.map(({ message }) => message);
}
