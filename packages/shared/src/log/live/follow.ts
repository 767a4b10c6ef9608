// One subscription to the log: history first, then live, each matching event once and in order.
//
//   log   |------------------ history ------------------|------- ring (memory) -------| end
//          missed(): pages, shared with other readers     inRing(): entry by entry      takeQueued(): armed, woken by matches
//
// 1. Every match up to `#done` was delivered; `#done` never goes back.
// 2. A follower is armed (the tail wakes it at a match) only where `#done` is at the ring's end, or past it: nothing can come in between.
// 3. A follower that is too slow loses its place in the ring, never an event: it reads history again.
// 4. What the log dropped at its beginning before it was read is an OutOfRangeError, never a jump. (Holes further on are
//    reported by log/holes/.)
// How readers that fall behind together share pages: docs/decisions/0058-pages-of-history-that-are-shared.md.
import { abortable } from "../../sync/abortable.ts";
import { backoff, delay } from "../../sync/delay.ts";
import type { FollowOptions, HeldBatches, HeldEvent, LogReader, ReadFrom } from "../log.ts";
import { laterOf, logStart, type Offset } from "../offset.ts";
import { OutOfRangeError } from "../out-of-range.ts";
import type { SharedHistory } from "../shared-history/shared-history.ts";
import { subjectMatcher } from "../subject-match.ts";
import type { Ring } from "./ring.ts";
import type { SharedEvent } from "./shared-event.ts";
import type { SharedTail } from "./shared-tail.ts";
import type { Tail } from "./tail.ts";
import type { Watch } from "./watch.ts";

export type FollowDeps = Pick<LogReader, "bounds" | "lastMatch" | "assertRetained"> & {
  readonly tail: Pick<SharedTail, "hold">;
  readonly history: Pick<SharedHistory, "batches">;
};

type FollowerDeps = Omit<FollowDeps, "tail"> & { readonly tail: Tail };

/** After this many events a follower lets the others continue. */
const eventsPerTurn = 32;

/** A batch ends at this many bytes, because a stopped reader holds its batch after the ring has dropped it. */
const bytesPerTurn = 64 * 1024;

/**
 * See LogReader.followBatches.
 *
 * The hand-over from history to the ring is exact because of its order: first what the tail has reached, then the leader's last match, which is
 * at least that, then history up to the match. Whatever is not after `reached` has been read then, also when the node
 * that serves history lags behind the leader; the rest is in the ring, or it is read from history again.
 */
export async function* followLog(deps: FollowDeps, from: ReadFrom, options: FollowOptions): HeldBatches {
  const { tail, release } = deps.tail.hold();
  const follower = new Follower({ ...deps, tail }, from, options);
  try {
    while (!follower.isOver) {
      const live = tail.now();
      if (live === undefined) await follower.wait();
      else if (follower.isEndUnknown) await follower.askForEnd();
      else if (follower.hasQueued) {
        // Nearly all that subscribers get comes this way, and not through another generator, which costs as much as the rest.
        if (follower.isOutOfTurn) await follower.turn();
        follower.isOutOfTurn = true;
        const batch = follower.takeQueued(live.ring);
        if (batch.length > 0) yield batch;
        follower.delivered(batch);
      } else if (follower.isAtEnd) await follower.more();
      else if (follower.isBehind(live.ring)) yield* follower.missed(live.last);
      else yield* follower.inRing(live.ring);
    }
  } finally {
    follower.close();
    release();
  }
}

class Follower {
  /** The signal has aborted: reading `aborted` of a signal that depends on others takes longer than a delivery's other checks. */
  isOver: boolean;
  /** It has had its turn, and waits for the next one before it gives another batch. */
  isOutOfTurn = false;
  readonly #deps: FollowerDeps;
  readonly #subjects: readonly string[];
  readonly #options: FollowOptions;
  readonly #watch: Watch;
  readonly #retry = backoff(50, 2_000);
  /** Every match up to this offset was delivered. */
  #done: Offset;
  /** The log's end when the subscription began. "Caught up" covers all of it, even if the tail is behind that. */
  #logEnd: Offset | undefined;
  #isCaughtUp: boolean;
  /** Something left the ring before its turn. */
  #isDropped = false;

  constructor(deps: FollowerDeps, { afterOffset, subjects }: ReadFrom, options: FollowOptions) {
    const { watches } = deps.tail;
    this.#deps = deps;
    this.#subjects = subjects;
    this.#options = options;
    this.#watch = watches.open(subjects, { isPatient: options.isPatient ?? false });
    this.#done = afterOffset;
    this.#isCaughtUp = options.caughtUp === undefined;
    watches.setEager(this.#watch, !this.#isCaughtUp);
    this.isOver = options.signal.aborted;
    options.signal.addEventListener("abort", this.#end);
  }

  close(): void {
    this.#options.signal.removeEventListener("abort", this.#end);
    this.#deps.tail.watches.close(this.#watch);
  }

  readonly #end = (): void => {
    this.isOver = true;
    this.#watch.wake();
  };

  /** The log's end must be known before anything is given to one who wants to hear when he has caught up. */
  get isEndUnknown(): boolean {
    return !this.#isCaughtUp && this.#logEnd === undefined;
  }

  async askForEnd(): Promise<void> {
    this.#logEnd = await this.#ask(async () => (await this.#deps.bounds()).lastOffset);
  }

  /** The tail has put something into the queue. */
  get hasQueued(): boolean {
    return this.#watch.isArmed && !this.#watch.isEmpty;
  }

  /** Everything was taken from the queue, and what comes next is put there. */
  get isAtEnd(): boolean {
    return this.#watch.isArmed && this.#watch.isEmpty;
  }

  /** The ring does not reach back to what comes next. */
  isBehind(ring: Ring<SharedEvent>): boolean {
    return this.#done < ring.floor;
  }

  /**
   * The next batch of the queue. History, or the position to resume from, may be ahead of the tail: then the tail brings
   * events that were delivered already, and the batch may be empty.
   */
  takeQueued(ring: Ring<SharedEvent>): readonly SharedEvent[] {
    const batch: SharedEvent[] = [];
    let bytes = 0;
    while (batch.length < eventsPerTurn && bytes < bytesPerTurn && !this.#isDropped) {
      const index = this.#watch.next();
      if (index === undefined) break;
      const entry = ring.at(index);
      if (entry === undefined) this.#isDropped = true;
      else if (entry.offset > this.#done) {
        batch.push(entry);
        bytes += bytesOf(entry);
      }
    }
    return batch;
  }

  /** A batch of the queue was given. Disarms the watch when the next event has left the ring: it is read from history. */
  delivered(batch: readonly SharedEvent[]): void {
    this.#done = batch.at(-1)?.offset ?? this.#done;
    if (this.#isDropped) this.#watch.disarm();
    this.#isDropped = false;
  }

  /** Resolves when there is more. */
  more(): Promise<void> {
    this.#report();
    return this.wait();
  }

  /** What the ring no longer has. */
  async *missed(reached: Offset): HeldBatches {
    const match = await this.#ask(() => this.#deps.lastMatch(this.#subjects));
    if (match === undefined) return;
    const range = { afterOffset: this.#done, subjects: this.#subjects };
    for await (const batch of this.#deps.history.batches(range, match, this.#options.signal)) {
      yield batch;
      this.#done = (batch.at(-1) as HeldEvent).offset;
    }
    if (this.isOver) return;
    // What matched may have been dropped, so that nothing was left to read.
    const isRetained = await this.#ask(() => this.#deps.assertRetained(this.#done).then(() => true));
    if (isRetained) this.#done = laterOf(this.#done, reached);
  }

  /** Reads what the ring has, up to its end. */
  async *inRing(ring: Ring<SharedEvent>): HeldBatches {
    const matches = subjectMatcher(this.#subjects);
    let index = ring.indexAfter(this.#done);
    while (ring.at(index) !== undefined && !this.isOver) {
      if (this.isOutOfTurn) await this.turn();
      this.isOutOfTurn = true;
      // The ring was emptied meanwhile, and continues after what the log has lost: history reports that.
      if (this.#done < ring.floor) return;
      const batch: SharedEvent[] = [];
      let done = this.#done;
      let bytes = 0;
      for (let seen = 0; seen < eventsPerTurn && bytes < bytesPerTurn; seen++) {
        const entry = ring.at(index);
        if (entry === undefined) break;
        index++;
        done = entry.offset;
        if (!matches(entry.tokens)) continue;
        batch.push(entry);
        bytes += bytesOf(entry);
      }
      if (batch.length > 0) yield batch;
      this.#done = done;
    }
    // At the end, and not behind its beginning meanwhile. What comes next is queued, as nothing can come in between.
    if (!this.isOver && this.#done >= ring.floor) this.#watch.arm();
  }

  /** Every match was delivered. */
  #report(): void {
    const { caughtUp, reached } = this.#options;
    this.#done = laterOf(this.#done, this.#deps.tail.now()?.last ?? logStart);
    if (!this.#isCaughtUp && this.#done >= (this.#logEnd ?? logStart)) {
      this.#isCaughtUp = true;
      this.#deps.tail.watches.setEager(this.#watch, false);
      caughtUp?.(this.#done);
    }
    if (this.#isCaughtUp) reached?.(this.#done);
  }

  async wait(): Promise<void> {
    // The listeners of that report may have enough: nothing would wake this follower then.
    if (this.isOver) return;
    await this.#watch.changed();
    this.isOutOfTurn = false;
  }

  /** One batch a turn. A follower that was woken has its turn already. */
  turn(): Promise<void> {
    return this.#deps.tail.watches.nextTurn();
  }

  /** Undefined if the log is unavailable, after a delay. */
  async #ask<T>(question: () => Promise<T>): Promise<T | undefined> {
    try {
      const answer = await abortable(question(), this.#options.signal);
      this.#retry.reset();
      return answer;
    } catch (error) {
      if (error instanceof OutOfRangeError) throw error;
      await delay(this.#retry.next(), this.#options.signal);
      return undefined;
    }
  }
}

function bytesOf({ bytes }: SharedEvent): number {
  return bytes?.byteLength ?? 0;
}
