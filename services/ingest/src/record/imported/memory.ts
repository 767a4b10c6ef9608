import { startTimer, stopTimer, type Timer } from "@tapedeck/shared/sync/timers";
/** Keeps values for a short time. */
export type Memory<K, V> = {
  /** Removes the value and returns it, so that no two users share it. */
  take(key: K): V | undefined;
  keep(key: K, value: V): void;
};

/** The sessions of one command follow each other within milliseconds. */
const retainedMs = 30_000;
/** Bounds the memory, because the history of a large team is long. */
const maxSources = 16;

export class ExpiringMemory<K, V> implements Memory<K, V> {
  readonly #entries = new Map<K, { readonly value: V; readonly timer: Timer }>();

  take(key: K): V | undefined {
    const entry = this.#entries.get(key);
    stopTimer(entry?.timer);
    this.#entries.delete(key);
    return entry?.value;
  }

  keep(key: K, value: V): void {
    this.take(key);
    const [oldest] = this.#entries.keys();
    if (oldest !== undefined && this.#entries.size >= maxSources) this.take(oldest);
    this.#entries.set(key, { value, timer: startTimer(() => this.take(key), retainedMs).unref() });
  }
}
