/** A state as it was written: the version of its row (see StoredState), and how long its JSON is. */
export type WrittenState = {
  readonly session: string;
  readonly source: string;
  readonly version: string;
  readonly state: unknown;
  readonly length: number;
};

/** Bound of all states together, in characters of their JSON. */
const defaultMaxLength = 16 * 1024 * 1024;

/**
 * The states that this process wrote last. An answer about now is made of them without reading the state back, which costs
 * what the whole state does. A state is that of a row only if their versions are equal: one of a transaction that was rolled
 * back, or that another process has replaced, equals none.
 */
export class NewestStates {
  readonly #maxLength: number;
  /** The one that was written longest ago first. */
  readonly #written = new Map<string, WrittenState>();
  #length = 0;

  constructor(maxLength = defaultMaxLength) {
    this.#maxLength = maxLength;
  }

  put(written: WrittenState): void {
    // The one before it stays: readers see it until the transaction is committed.
    const [, ...older] = this.#where(({ session }) => session === written.session).reverse();
    for (const one of older) this.#drop(one);
    if (written.length > this.#maxLength) return;
    this.#written.set(written.version, written);
    this.#length += written.length;
    for (const oldest of this.#written.values()) {
      if (this.#length <= this.#maxLength) return;
      this.#drop(oldest);
    }
  }

  of(source: string): readonly WrittenState[] {
    return this.#where((one) => one.source === source);
  }

  #where(isMeant: (one: WrittenState) => boolean): WrittenState[] {
    return [...this.#written.values()].filter(isMeant);
  }

  #drop({ version, length }: WrittenState): void {
    if (this.#written.delete(version)) this.#length -= length;
  }
}
