/**
 * The promise's outcome, or a rejection with the signal's reason as soon as it aborts. Leaves nothing behind on either:
 * a plain Promise.race with a signal that lives long keeps every loser.
 */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const aborted = () => reject(signal.reason);
    if (signal.aborted) aborted();
    signal.addEventListener("abort", aborted);
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", aborted));
  });
}
