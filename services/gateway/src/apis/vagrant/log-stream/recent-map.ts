/** Entries beyond this many are forgotten, those first that were first set. A caller that needs one again finds it out again. */
const maxEntries = 10_000;

/** A map that forgets the keys that it has had longest, also those that were set again since. */
export class RecentMap<V> {
  readonly #entries = new Map<string, V>();

  get(key: string): V | undefined {
    return this.#entries.get(key);
  }

  has(key: string): boolean {
    return this.#entries.has(key);
  }

  set(key: string, value: V): void {
    this.#entries.set(key, value);
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > maxEntries && oldest !== undefined) this.#entries.delete(oldest);
  }
}
