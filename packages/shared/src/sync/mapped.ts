/**
 * Maps values one after the other, and leaves out those that become undefined. Costs a fraction of an async generator. Ends
 * its source as a loop does that is left.
 */
export function mapped<T, U>(source: AsyncIterable<T>, map: (value: T) => U | undefined): AsyncIterableIterator<U> {
  const iterator = source[Symbol.asyncIterator]();
  let isOver = false;
  const end = async () => {
    isOver = true;
    await iterator.return?.();
    return { done: true as const, value: undefined };
  };
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    async next() {
      while (!isOver) {
        const { done, value } = await iterator.next();
        if (done === true) break;
        try {
          const result = map(value);
          if (result !== undefined) return { done: false, value: result };
        } catch (cause) {
          await end();
          throw cause;
        }
      }
      isOver = true;
      return { done: true, value: undefined };
    },
    return: end,
  };
}
