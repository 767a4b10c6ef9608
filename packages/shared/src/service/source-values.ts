/** Prometheus has them long before. */
const rememberedMs = 3_600_000;

/**
 * What a service counts of each source, for its metrics. A source that has not been counted for an hour is forgotten, so that
 * neither the number of series nor the name of an erased developer lasts as long as the process.
 */
export class SourceValues<Values> {
  readonly #known = new Map<string, { readonly values: Values; countedAt: number }>();
  readonly #make: () => Values;
  readonly #isInUse: (source: string) => boolean;
  readonly #now: () => number;

  /** `isInUse`: such a source is not forgotten. */
  constructor(
    make: () => Values,
    isInUse: (source: string) => boolean = () => false,
    now: () => number = () => performance.now(),
  ) {
    this.#make = make;
    this.#isInUse = isInUse;
    this.#now = now;
  }

  /** The values of a source in which something is counted now. */
  of(source: string): Values {
    const countedAt = this.#now();
    const known = this.#known.get(source);
    if (known === undefined) {
      const values = this.#make();
      this.#known.set(source, { values, countedAt });
      return values;
    }
    known.countedAt = countedAt;
    return known.values;
  }

  *[Symbol.iterator](): Generator<readonly [source: string, values: Values], void> {
    const before = this.#now() - rememberedMs;
    for (const [source, { values, countedAt }] of this.#known) {
      if (countedAt < before && !this.#isInUse(source)) this.#known.delete(source);
      else yield [source, values];
    }
  }
}
