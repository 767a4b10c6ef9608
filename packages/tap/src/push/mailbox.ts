/** Brings what several put in to one taker. `put` resolves when it is taken, so that nothing piles up, or never will be. */
export type Mailbox<T> = AsyncIterable<T> & {
  readonly put: (value: T) => Promise<void>;
  /** The taker's loop ends; nobody waits on with what is not taken (a file would stay open). */
  readonly close: () => void;
};

export function mailbox<T>(): Mailbox<T> {
  const letters: { readonly value: T; readonly taken: () => void }[] = [];
  let wake = Promise.withResolvers<void>();
  let closed = false;
  return {
    put: (value) =>
      new Promise((taken) => {
        if (closed) return taken();
        letters.push({ value, taken });
        wake.resolve();
      }),
    close: () => {
      closed = true;
      for (const { taken } of letters.splice(0)) taken();
      wake.resolve();
    },
    async *[Symbol.asyncIterator]() {
      while (!closed) {
        const letter = letters.shift();
        if (letter === undefined) {
          await wake.promise;
          wake = Promise.withResolvers();
        } else {
          letter.taken();
          yield letter.value;
        }
      }
    },
  };
}
