export type Memory<K, V> = {
  /** Gives it away: nobody else has it until it is kept again. */
  take(key: K): V | undefined;
  keep(key: K, value: V): void;
};

/** Between two sessions of one command are milliseconds. */
const keptMs = 30_000;
/** The log of a large team tells much of each. */
const mostKept = 16;

export function memory<K, V>(): Memory<K, V> {
  const kept = new Map<K, { readonly value: V; readonly timer: NodeJS.Timeout }>();
  const take = (key: K) => {
    const found = kept.get(key);
    clearTimeout(found?.timer);
    kept.delete(key);
    return found?.value;
  };
  return {
    take,
    keep(key, value) {
      take(key);
      const [oldest] = kept.keys();
      if (oldest !== undefined && kept.size >= mostKept) take(oldest);
      kept.set(key, { value, timer: setTimeout(() => take(key), keptMs).unref() });
    },
  };
}
