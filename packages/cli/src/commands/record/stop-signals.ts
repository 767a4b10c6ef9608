export type StopSignals = {
  /** Ends the running work, in order. */
  readonly first: AbortSignal;
  /** Stops waiting altogether. */
  readonly second: AbortSignal;
  /** From here on signals do what they do by default. */
  readonly release: () => void;
};

/** `timeout`, npm and others pass on what the terminal has sent to all already. */
const echoMs = 500;

/** SIGINT, SIGTERM and SIGHUP: the first one, and any that comes later than its echo. */
export function stopSignals(): StopSignals {
  const first = new AbortController();
  const second = new AbortController();
  let since = 0;
  const stop = () => {
    if (!first.signal.aborted) {
      since = performance.now();
      first.abort();
    } else if (performance.now() - since > echoMs) second.abort();
  };
  const names = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const name of names) process.on(name, stop);
  return {
    first: first.signal,
    second: second.signal,
    release: () => {
      for (const name of names) process.off(name, stop);
    },
  };
}
