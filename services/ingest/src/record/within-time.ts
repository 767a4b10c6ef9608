import { setImmediate } from "node:timers/promises";
import { startTimer, stopTimer } from "@tapedeck/shared/sync/timers";

/**
 * Undefined if nothing has come in that time. What came while this process was held up counts as come: a timer that is
 * due runs before the sockets are read, so they are read once more before nothing is concluded.
 */
export function withinTime<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  // Kept cheap, because an import waits here for each of its items.
  return new Promise((resolve, reject) => {
    const late = startTimer(() => void setImmediate().then(() => resolve(undefined)), ms);
    promise.then(resolve, reject).finally(() => stopTimer(late));
  });
}
