/** The first signal means: don't wait. */
export function abortSignal() {
  const abort = new AbortController();
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  const quick = () => abort.abort();
  for (const signal of signals) process.on(signal, quick);
  return {
    signal: abort.signal,
    release: () => {
      for (const signal of signals) process.off(signal, quick);
    },
  };
}

/**
 * Work that has not begun is not waited for: it has received nothing, and the event log file is left to the next run.
 */
export async function unlessAborted<Value>(value: Promise<Value>, abort: AbortSignal): Promise<Value | undefined> {
  const over = new AbortController();
  const aborted = new Promise<undefined>((resolve) => {
    abort.addEventListener("abort", () => resolve(undefined), { signal: over.signal });
  });
  return Promise.race([value, aborted]).finally(() => over.abort());
}
