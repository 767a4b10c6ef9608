import { Notifier } from "@tapedeck/shared/sync/notifier";

/** Passes values from several writers to one reader. `put` resolves when the value is taken, so that nothing piles up, or after `close`. */
export type Mailbox<T> = AsyncIterable<T> & {
  readonly put: (value: T) => Promise<void>;
  /** Ends the reader's loop and resolves every waiting `put`, because a waiting writer would keep its file open. */
  readonly close: () => void;
};

/** An empty mailbox. */
export function mailbox<T>(): Mailbox<T> {
  const waiting: { readonly value: T; readonly taken: () => void }[] = [];
  const changed = new Notifier();
  let closed = false;
  return {
    put: (value) =>
      new Promise((taken) => {
        if (closed) return taken();
        waiting.push({ value, taken });
        changed.ring();
      }),
    close: () => {
      closed = true;
      for (const { taken } of waiting.splice(0)) taken();
      changed.ring();
    },
    async *[Symbol.asyncIterator]() {
      while (!closed) {
        const entry = waiting.shift();
        if (entry === undefined) {
          await changed.next();
        } else {
          entry.taken();
          yield entry.value;
        }
      }
    },
  };
}
