const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** The first signal of each kind means: clean up and end. A second one ends the process at once. */
export function stopSignals(): Disposable & { readonly signal: AbortSignal } {
  const stop = new AbortController();
  const abort = () => stop.abort();
  for (const name of signals) process.once(name, abort);
  return {
    signal: stop.signal,
    [Symbol.dispose]: () => {
      for (const name of signals) process.off(name, abort);
    },
  };
}
