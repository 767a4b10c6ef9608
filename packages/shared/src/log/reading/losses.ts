import type { LogReader } from "../log.ts";
import { endOf, firstMessageAfter, logStart, type Sequence } from "../offset.ts";
import { noLongerRetained, type OutOfRangeError, unreadable } from "../out-of-range.ts";
import { type Leader, orNotReady } from "./leader.ts";

/** Distinguishes messages that were dropped, or can't be read, from those that are erased or expired. */
export type Losses = {
  /** The error for a reader that misses this message; undefined when nothing from there on was dropped. */
  dropped(missing: Sequence): Promise<OutOfRangeError | undefined>;
  /** For a reader to whom nothing comes from `next` on, although there is more. Undefined: it will come. */
  unreadable(
    next: Sequence,
    subjects: readonly string[],
  ): Promise<{ readonly continueAt: Sequence } | { readonly error: OutOfRangeError } | undefined>;
};

/** A reader of events gets an error for what it misses. */
export function lossesOf(leader: Leader, epoch: string): Losses {
  return {
    async dropped(missing) {
      const first = await leader.firstRetained();
      return missing < first ? noLongerRetained(epoch, endOf(missing - 1), first) : undefined;
    },
    async unreadable(next, subjects) {
      const readable = await leader.readableAfter(next, subjects);
      return readable === undefined ? undefined : { error: unreadable(epoch, endOf(next - 1), readable) };
    },
  };
}

/** A check of the log reads what there is, and compares the neighbours itself. */
export function passedLosses(leader: Leader): Losses {
  return {
    dropped: async () => undefined,
    async unreadable(next, subjects) {
      const continueAt = await leader.readableAfter(next, subjects);
      return continueAt === undefined ? undefined : { continueAt };
    },
  };
}

/** See LogReader.assertRetained. */
export function retainedBy(losses: Losses): LogReader["assertRetained"] {
  return async (afterOffset) => {
    if (afterOffset === logStart) return;
    const loss = await orNotReady(losses.dropped(firstMessageAfter(afterOffset)));
    if (loss !== undefined) throw loss;
  };
}
