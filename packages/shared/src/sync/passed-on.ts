/** What happens beside the values. Everything is optional, and what throws ends the generator with its error. */
export type PassedOnHooks<T> = {
  /** Called before the first value is requested. */
  readonly onStart?: () => void;
  /** Called before each value is requested. */
  readonly onNext?: () => void;
  /** Called with each value; gives what is passed on instead of it. */
  readonly onValue?: (value: T) => T;
  /** Called after the last value. */
  readonly onDone?: () => void;
  /** Called with what the generator or a hook threw. */
  readonly onError?: (error: unknown) => void;
  /** Called once at the end, whatever it is, if it has begun. */
  readonly onEnd?: () => void;
};

const over = { done: true, value: undefined } as const;

/**
 * The values of another generator. A generator with `yield*` does the same, and takes three promises for each value: with six of
 * them one around the other, as for a subscriber, they cost more than sending the value.
 */
export function passedOn<T>(open: () => AsyncGenerator<T, void>, hooks: PassedOnHooks<T>): AsyncGenerator<T, void> {
  return new PassedOn(open, hooks);
}

class PassedOn<T> implements AsyncGenerator<T, void> {
  readonly #open: () => AsyncGenerator<T, void>;
  readonly #hooks: PassedOnHooks<T>;
  #inner: AsyncGenerator<T, void> | undefined;
  #hasBegun = false;
  #isOver = false;

  constructor(open: () => AsyncGenerator<T, void>, hooks: PassedOnHooks<T>) {
    this.#open = open;
    this.#hooks = hooks;
  }

  next(): Promise<IteratorResult<T, void>> {
    if (this.#isOver) return Promise.resolve(over);
    try {
      if (this.#inner === undefined) {
        this.#hooks.onStart?.();
        this.#hasBegun = true;
        this.#inner = this.#open();
      }
      this.#hooks.onNext?.();
    } catch (error) {
      return this.#fail(error);
    }
    return this.#inner.next().then(this.#take, this.#fail);
  }

  async return(): Promise<IteratorResult<T, void>> {
    return (await this.#leave((inner) => inner.return())) ?? over;
  }

  async throw(error: unknown): Promise<IteratorResult<T, void>> {
    const left = await this.#leave((inner) => inner.throw(error));
    if (left === undefined) throw error;
    return left;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  readonly #take = (result: IteratorResult<T, void>): IteratorResult<T, void> | Promise<never> => {
    try {
      if (result.done !== true) {
        const { onValue } = this.#hooks;
        return onValue === undefined ? result : { done: false, value: onValue(result.value) };
      }
      if (!this.#isOver) this.#hooks.onDone?.();
    } catch (error) {
      return this.#fail(error);
    }
    this.#end();
    return result;
  };

  readonly #fail = async (error: unknown): Promise<never> => {
    this.#hooks.onError?.(error);
    this.#end();
    await this.#inner?.return().catch(() => {});
    throw error;
  };

  async #leave(
    how: (inner: AsyncGenerator<T, void>) => Promise<IteratorResult<T, void>>,
  ): Promise<IteratorResult<T, void> | undefined> {
    const inner = this.#inner;
    if (inner === undefined || this.#isOver) {
      this.#isOver = true;
      return undefined;
    }
    try {
      const left = await how(inner);
      this.#end();
      return left;
    } catch (error) {
      return await this.#fail(error);
    }
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#hasBegun) this.#hooks.onEnd?.();
  }
}
