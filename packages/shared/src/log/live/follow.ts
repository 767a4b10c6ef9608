// One subscription to the log: history first, then live, each matching event once and in order.
//
//   log   |------------------ history ------------------|------- ring (memory) -------| end
//          #missed(): pages, shared with other readers    #inRing(): entry by entry     #queued(): armed, woken by matches
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
  const { watches } = tail;
  const watch = watches.open(from.subjects);
  const wake = () => watch.wake();
  options.signal.addEventListener("abort", wake);
  try {
    yield* new Follower({ ...deps, tail }, from, options, watch).batches();
  } finally {
    options.signal.removeEventListener("abort", wake);
    watches.close(watch);
    release();
  }
}

class Follower {
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
  #isOutOfTurn = false;

  constructor(deps: FollowerDeps, { afterOffset, subjects }: ReadFrom, options: FollowOptions, watch: Watch) {
    this.#deps = deps;
    this.#subjects = subjects;
    this.#options = options;
    this.#watch = watch;
    this.#done = afterOffset;
    this.#isCaughtUp = options.caughtUp === undefined;
    deps.tail.watches.setEager(watch, !this.#isCaughtUp);
  }

  async *batches(): HeldBatches {
    const { tail } = this.#deps;
    while (!this.#isOver) {
      const live = tail.now();
      if (live === undefined) await this.#wait();
      else if (!this.#isCaughtUp && this.#logEnd === undefined) {
        this.#logEnd = await this.#ask(async () => (await this.#deps.bounds()).lastOffset);
      } else if (this.#watch.isArmed) {
        yield* this.#queued(live.ring);
        // An entry may have come while the generator returned: then there is more to give, and nothing to report.
        if (this.#watch.isArmed && this.#watch.isEmpty && !this.#isOver) {
          this.#report();
          await this.#wait();
        }
      } else if (this.#done < live.ring.floor) yield* this.#missed(live.last);
      else yield* this.#inRing(live.ring);
    }
  }

  get #isOver(): boolean {
    return this.#options.signal.aborted;
  }

  /**
   * What the tail has put into the queue. Disarmed when something left the ring before its turn. History, or the position
   * to resume from, may be ahead of the tail: then the tail brings events that were delivered already.
   */
  async *#queued(ring: Ring<SharedEvent>): HeldBatches {
    while (!this.#watch.isEmpty && !this.#isOver) {
      await this.#giveWay();
      const batch: SharedEvent[] = [];
      let isDropped = false;
      let bytes = 0;
      while (batch.length < eventsPerTurn && bytes < bytesPerTurn && !isDropped) {
        const index = this.#watch.next();
        if (index === undefined) break;
        const entry = ring.at(index);
        if (entry === undefined) isDropped = true;
        else if (entry.offset > this.#done) {
          batch.push(entry);
          bytes += bytesOf(entry);
        }
      }
      const last = batch.at(-1);
      if (last !== undefined) {
        yield batch;
        this.#done = last.offset;
      }
      if (isDropped) this.#watch.disarm();
    }
  }

  /** What the ring no longer has. */
  async *#missed(reached: Offset): HeldBatches {
    const match = await this.#ask(() => this.#deps.lastMatch(this.#subjects));
    if (match === undefined) return;
    const range = { afterOffset: this.#done, subjects: this.#subjects };
    for await (const batch of this.#deps.history.batches(range, match, this.#options.signal)) {
      yield batch;
      this.#done = (batch.at(-1) as HeldEvent).offset;
    }
    if (this.#isOver) return;
    // What matched may have been dropped, so that nothing was left to read.
    const isRetained = await this.#ask(() => this.#deps.assertRetained(this.#done).then(() => true));
    if (isRetained) this.#done = laterOf(this.#done, reached);
  }

  /** Reads what the ring has, up to its end. */
  async *#inRing(ring: Ring<SharedEvent>): HeldBatches {
    const matches = subjectMatcher(this.#subjects);
    let index = ring.indexAfter(this.#done);
    while (ring.at(index) !== undefined && !this.#isOver) {
      await this.#giveWay();
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
    if (!this.#isOver && this.#done >= ring.floor) this.#watch.arm();
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

  async #wait(): Promise<void> {
    // The listeners of that report may have enough: nothing would wake this follower then.
    if (this.#isOver) return;
    await this.#watch.changed();
    this.#isOutOfTurn = false;
  }

  /** One batch a turn. A follower that was woken has its turn already. */
  async #giveWay(): Promise<void> {
    if (this.#isOutOfTurn) await this.#deps.tail.watches.nextTurn();
    this.#isOutOfTurn = true;
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
