import { TapedeckError } from "../../errors/errors.ts";
import { abortable } from "../../sync/abortable.ts";
import type { Semaphore } from "../../sync/semaphore.ts";
import { timeoutSignal } from "../../sync/timers.ts";
import type { Shift } from "../live/shift.ts";
import { type HeldBatches, type LogBounds, LogReplacedError, type ReadFrom } from "../log.ts";
import { endOf, firstMessageAfter, type Offset, type Sequence, sequenceOf } from "../offset.ts";
import { OutOfRangeError } from "../out-of-range.ts";
import { subjectMatcher } from "../subject-match.ts";
import { messageFilters } from "../subjects.ts";
import { Breaker } from "./breaker.ts";
import type { EventSelection, ReadMessage, Warn } from "./decode.ts";
import type { Stored } from "./direct-get.ts";
import { hold } from "./hold.ts";
import { type Leader, orNotReady } from "./leader.ts";
import type { Replicas } from "./replicas.ts";

/** A leader answers within a few ms. */
const leaderMs = 400;
/** To make a consumer, servers agree with each other and write to their disks. */
const consumerMs = 1_000;
/** An election takes 4 to 9 s. Anything this much longer is no election, and a replica might be behind by as much. */
const longestElectionMs = 30_000;

const batchBytes = 1024 * 1024;
const largestBatch = 1_000;
const firstBatch = 64;

export type ElectionReaderDeps = {
  readonly leader: Leader;
  readonly replicas: Replicas;
  /** From a consumer. With `maxSilenceMs` it rejects when the log is silent for so long, instead of waiting. */
  readonly consumerHistory: (
    from: ReadFrom,
    untilOffset: Offset,
    options: { readonly signal: AbortSignal; readonly maxSilenceMs?: number },
  ) => HeldBatches;
  readonly leaderStoredAt: (seq: Sequence) => Promise<Stored | null>;
  readonly readMessage: ReadMessage;
  readonly selectionOf: (subjects: readonly string[], after: Offset, until: Offset) => EventSelection;
  /** The last message that this process has seen. */
  readonly lastSeen: () => Sequence;
  readonly semaphore: Semaphore;
  readonly shift: Shift;
  readonly warn: Warn;
};

/**
 * Asks the leader, and makes consumers, as every reader does. Where these fail or are silent, as while the servers elect a
 * leader, it asks the log's replicas. A log without replicas is asked as usual only.
 */
export class ElectionReader {
  readonly #deps: ElectionReaderDeps;
  readonly #leader = new Breaker(longestElectionMs);
  readonly #consumers = new Breaker(longestElectionMs);
  /** The last end that was returned. */
  #end: Sequence = 0;

  constructor(deps: ElectionReaderDeps) {
    this.#deps = deps;
  }

  async bounds(): Promise<LogBounds> {
    const { leader } = this.#deps;
    const bounds = await this.#ask(
      () => leader.bounds(),
      () => this.#boundsOfReplica(),
    );
    this.#end = Math.max(this.#end, sequenceOf(bounds.lastOffset));
    return bounds;
  }

  firstSince(time: Date): Promise<Offset | undefined> {
    const { leader, replicas } = this.#deps;
    return this.#ask(
      () => leader.firstSince(time),
      () => replicas.firstSince(time),
    );
  }

  /** Null: it is gone. */
  async storedAt(seq: Sequence): Promise<Stored | null> {
    const { leader, replicas, leaderStoredAt } = this.#deps;
    if (!leader.hasReplicas) return leaderStoredAt(seq);
    const next =
      (await replicas.nextOfAny(seq)) ??
      (await this.#ask(
        () => leader.message(seq),
        () => replicas.nextOf(seq),
      ));
    return next?.seq === seq ? next : null;
  }

  /** Like LogReader.historyBatches, but rejects where the log can't be read. */
  async *historyBatches(from: ReadFrom, untilOffset: Offset, signal: AbortSignal): HeldBatches {
    const { leader, consumerHistory } = this.#deps;
    if (!leader.hasReplicas) return yield* consumerHistory(from, untilOffset, { signal });
    let done = from.afterOffset;
    if (!this.#leader.isFailing && this.#consumers.next() === "primary") {
      const mayAvoid = this.#consumers.mayAvoid();
      try {
        for await (const batch of consumerHistory(from, untilOffset, { signal, maxSilenceMs: consumerMs })) {
          this.#consumers.succeeded();
          yield batch;
          done = batch.at(-1)?.offset ?? done;
        }
        this.#consumers.succeeded();
        return;
      } catch (cause) {
        if (!mayAvoid || isAnswer(cause)) await orNotReady(Promise.reject(cause));
        this.#failed(this.#consumers, cause);
      }
    }
    yield* this.#fromReplicas({ ...from, afterOffset: done }, untilOffset, signal);
  }

  async #ask<T>(primary: () => Promise<T>, other: () => Promise<T>): Promise<T> {
    if (!this.#deps.leader.hasReplicas) return orNotReady(primary());
    if (this.#leader.next() === "primary") {
      const mayAvoid = this.#leader.mayAvoid();
      try {
        const answer = await abortable(primary(), timeoutSignal(leaderMs));
        this.#leader.succeeded();
        return answer;
      } catch (cause) {
        if (!mayAvoid || isAnswer(cause)) return orNotReady(Promise.reject(cause));
        this.#failed(this.#leader, cause);
      }
    }
    return orNotReady(other());
  }

  #failed(breaker: Breaker, err: unknown): void {
    if (!breaker.isFailing) this.#deps.warn("the log's leader does not answer: pages are read from replicas", { err });
    breaker.failed();
  }

  /** A replica may be behind what was delivered already. Then reading up to this end waits for one that has it, or fails. */
  async #boundsOfReplica(): Promise<LogBounds> {
    const { leader, replicas, lastSeen } = this.#deps;
    const known = leader.lastBounds;
    if (known === undefined) throw new Error("the log's bounds are not known yet");
    const last = Math.max(await replicas.lastMessage(), lastSeen(), this.#end);
    return { ...known, lastOffset: endOf(last), mayBeBehind: true };
  }

  /**
   * Reads all messages and leaves out those of other subjects: only a message at the end or after it shows that the replica
   * has everything before.
   */
  async *#fromReplicas({ afterOffset, subjects }: ReadFrom, untilOffset: Offset, signal: AbortSignal): HeldBatches {
    const { replicas, readMessage, selectionOf, semaphore, shift } = this.#deps;
    const isOf = subjectMatcher(messageFilters(subjects));
    const selection = selectionOf(subjects, afterOffset, untilOffset);
    const end = sequenceOf(untilOffset);
    let next = firstMessageAfter(afterOffset);
    for (let size = firstBatch; next <= end && !signal.aborted; size = Math.min(largestBatch, size * 2)) {
      const release = await semaphore.acquire(signal);
      if (release === undefined) return;
      let read: Stored[];
      try {
        read = [
          ...(await orNotReady(replicas.batchOf(next, { batch: Math.min(size, end - next + 1), bytes: batchBytes }))),
        ];
      } finally {
        release();
      }
      using held = hold(read);
      for (let message = held.next(); message !== undefined; message = held.next()) {
        if (message.seq > end || signal.aborted) return;
        const events = isOf(message.subject.split(".")) ? readMessage(message, selection) : [];
        if (events.length > 0) yield events;
        next = message.seq + 1;
        if (shift.isOver) await shift.next();
      }
    }
  }
}

/** Asking otherwise would change nothing: the log was replaced or deleted, or does not have it. */
function isAnswer(cause: unknown): boolean {
  if (cause instanceof LogReplacedError || cause instanceof OutOfRangeError) return true;
  const error = cause instanceof TapedeckError ? cause.cause : cause;
  return error instanceof Error && error.name === "StreamNotFoundError";
}
