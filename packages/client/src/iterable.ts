/** Each iteration is a run of its own; it is told at once when it is left, also while it waits. */
export function iterable<T>(run: (left: AbortSignal) => AsyncGenerator<T, void>): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const left = new AbortController();
      const running = run(left.signal);
      return {
        next: () => running.next(),
        return() {
          left.abort();
          return running.return();
        },
      };
    },
  };
}
