import { delay } from "../../sync/delay.ts";
import { startTimer, stopTimer } from "../../sync/timers.ts";
import { type Offset, offsetOf, type Sequence } from "../offset.ts";
import { everySubject } from "../subjects.ts";
import type { StreamAccess } from "./consumer.ts";
import { directBatch, directGet, type Stored } from "./direct-get.ts";
import { timeOf } from "./leader.ts";

/** A replica that is cut off does not answer, and the servers may choose it all the same: after this time another is asked, too. */
const askAgainMs = 200;
const attempts = 4;
const longestMs = 1_000;

/**
 * What any replica of the log can say, also while none leads. Each holds the log's beginning up to where it is; so what it
 * does not have yet it takes for the end. Nothing here concludes an end from that: an answer counts when the replica has
 * shown a message that is not before the one in question, and otherwise another one is asked.
 */
export class Replicas {
  readonly #access: StreamAccess;

  constructor(access: StreamAccess) {
    this.#access = access;
  }

  /** The last message of one of them, 0 for none. */
  async lastMessage(): Promise<Sequence> {
    return this.#oneOf(async () => {
      const last = await directGet(this.#access, { last_by_subj: everySubject }, longestMs);
      return last?.seq ?? 0;
    });
  }

  /** The next message from a sequence on; undefined if the one that was asked has none. */
  async nextOfAny(seq: Sequence): Promise<Stored | undefined> {
    const [next] = await this.#oneOf(async () => [await this.#next(seq)] as const);
    return next;
  }

  /** The same from one that has it. */
  nextOf(seq: Sequence): Promise<Stored> {
    return this.#oneOf(() => this.#next(seq));
  }

  /** Rejects where it has none since then: another one may have. */
  async firstSince(time: Date): Promise<Offset> {
    const question = { start_time: timeOf(time), batch: 1 } as const;
    const first = await this.#oneOf(() => directGet(this.#access, question, longestMs));
    return offsetOf(first.seq);
  }

  /** The next messages from a sequence on, at least one. */
  batchOf(seq: Sequence, { batch, bytes }: { batch: number; bytes: number }) {
    return this.#oneOf((over) => directBatch(this.#access, { seq, batch, max_bytes: bytes }, over));
  }

  #next(seq: Sequence): Promise<Stored | undefined> {
    return directGet(this.#access, { seq, batch: 1 }, longestMs);
  }

  /** Asks until one has an answer, and leaves those that are silent behind. Rejects when none has one in time. */
  async #oneOf<T>(ask: (over: AbortSignal) => Promise<T | undefined>): Promise<T> {
    const over = new AbortController();
    const found = Promise.withResolvers<T>();
    let cause: unknown = new Error("no replica answered in time, or none has it yet");
    const late = startTimer(() => found.reject(cause), longestMs);
    const attempt = async () => {
      try {
        const answer = await ask(over.signal);
        if (answer !== undefined) found.resolve(answer);
      } catch (error) {
        cause = error;
      }
    };
    const askAll = async () => {
      for (let attempted = 0; attempted < attempts && !over.signal.aborted; attempted++) {
        void attempt();
        await delay(askAgainMs, over.signal);
      }
    };
    void askAll();
    try {
      return await found.promise;
    } finally {
      over.abort();
      stopTimer(late);
    }
  }
}
