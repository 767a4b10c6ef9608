/** Each iteration is a separate run; leaving it aborts the run at once, even while it waits. */
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
