/** Brings what several put in to one taker. `put` resolves when it is taken, so that nothing piles up. */
export type Mailbox<T> = AsyncIterable<T> & {
  readonly put: (value: T) => Promise<void>;
  /** The taker's loop ends after what it has; later puts are never taken. */
  readonly close: () => void;
};

export function mailbox<T>(): Mailbox<T> {
  const letters: { readonly value: T; readonly taken: () => void }[] = [];
  let wake = Promise.withResolvers<void>();
  let closed = false;
  return {
    put: (value) =>
      new Promise((taken) => {
        letters.push({ value, taken });
        wake.resolve();
      }),
    close: () => {
      closed = true;
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
