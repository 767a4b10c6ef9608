import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { delay } from "@tapedeck/shared/sync/delay";
import { LinkedController } from "@tapedeck/shared/sync/linked-controller";
import { Notifier } from "@tapedeck/shared/sync/notifier";

/** Opens a reader of the log, which calls `reached` whenever it has no more for now. */
export type OpenReader = (options: {
  readonly signal: AbortSignal;
  readonly reached: () => void;
}) => AsyncGenerator<RecordedEvent, void>;

/**
 * The events of a reader, and undefined whenever there are no more for now. Yields undefined once more for each time that
 * `againMs` gives, in milliseconds, when that time passes without an event.
 */
export async function* followWithPauses(
  openReader: OpenReader,
  signal: AbortSignal,
  againMs: () => number | undefined = () => undefined,
): AsyncGenerator<RecordedEvent | undefined, void> {
  const left = new AbortController();
  const over = AbortSignal.any([signal, left.signal]);
  const caughtUp = new Notifier();
  const events = openReader({ signal: over, reached: () => caughtUp.ring() });
  try {
    for (;;) {
      let paused = caughtUp.next();
      const next = events.next();
      using arrived = new LinkedController(over);
      try {
        while ((await isFirst(paused, next)) && !over.aborted) {
          yield undefined;
          paused = delayIfAny(againMs(), arrived.signal);
        }
      } finally {
        arrived.abort();
      }
      const { done, value } = await next;
      if (done === true) return;
      yield value;
    }
  } finally {
    left.abort();
  }
}

function isFirst(one: Promise<void>, other: Promise<unknown>): Promise<boolean> {
  return Promise.race([other.then(() => false), one.then(() => true)]);
}

/** Never resolves when there is no time to wait for. */
function delayIfAny(ms: number | undefined, signal: AbortSignal): Promise<void> {
  return ms === undefined ? new Promise(() => {}) : delay(ms, signal);
}
