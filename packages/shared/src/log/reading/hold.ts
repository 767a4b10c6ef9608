import { startTimer, stopTimer } from "../../sync/timers.ts";

/** Read messages that are not consumed are dropped after this time, and read again on demand. */
const holdMs = 5_000;

/** Hands out what was read, one by one, and drops the rest after a while without a request. */
export function hold<T>(read: T[]) {
  let index = 0;
  let dropped = false;
  const timer = startTimer(() => {
    dropped = index < read.length;
    read.length = 0; // in place: a suspended reader keeps the array
  }, holdMs).unref();
  return {
    next(): T | undefined {
      timer.refresh();
      return read[index++];
    },
    get dropped() {
      return dropped;
    },
    [Symbol.dispose]: () => stopTimer(timer),
  };
}
