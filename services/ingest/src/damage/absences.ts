import type { KnownHole } from "@tapedeck/shared/log/holes/known-holes";
import type { Sequence } from "@tapedeck/shared/log/offset";
import type { HolePlace } from "./holes.ts";

/** Expired text may leave millions of them. Where there are more, a hole reaches from one message of its source to the next. */
const maxAbsences = 1_000_000;

/** Which sequences of the log have no message. */
export class Absences {
  readonly #firsts: Sequence[] = [];
  readonly #lasts: Sequence[] = [];
  readonly #begin: Sequence;
  #next: Sequence;

  /** `first`: where the log begins. */
  constructor(first: Sequence) {
    this.#begin = first;
    this.#next = first;
  }

  /** The next message that there is. */
  reached(seq: Sequence): void {
    if (seq > this.#next && this.#firsts.length < maxAbsences) {
      this.#firsts.push(this.#next);
      this.#lasts.push(seq - 1);
    }
    this.#next = Math.max(this.#next, seq + 1);
  }

  /**
   * From the first to the last message that is missing there. Where the log lacks no sequence, the hole is an empty one, before
   * the next message of its source. None where only the log's beginning is.
   */
  within({ source, sessions, after = 0, before: next }: HolePlace): readonly KnownHole[] {
    const before = next ?? this.#next - 1;
    if (before <= this.#begin) return [];
    const from = this.#countUpTo(after);
    const to = this.#countUpTo(before);
    const [first, last] = [this.#firsts[from], this.#lasts[to - 1]];
    if (first !== undefined && last !== undefined && to > from) return [{ source, sessions, first, last }];
    const isFull = this.#firsts.length === maxAbsences;
    if (isFull && after + 1 < before) return [{ source, sessions, first: after + 1, last: before - 1 }];
    return next === undefined ? [] : [{ source, sessions, first: next, last: next - 1 }];
  }

  /** How many begin at a sequence or before. */
  #countUpTo(seq: Sequence): number {
    let low = 0;
    let high = this.#firsts.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#firsts[middle] as Sequence) <= seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
