import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { startTimer, stopTimer, type Timer } from "@tapedeck/shared/sync/timers";

/** How long it may go on without its caller. */
const defaultAloneMs = 10 * 60_000;

export type ToItsEnd<T> = {
  readonly begin: (signal: AbortSignal) => AsyncIterable<T>;
  /** Aborts when the caller is gone. */
  readonly caller: AbortSignal;
  /** Aborts when the gateway ends. */
  readonly closing: AbortSignal;
  /** Gets the error that no caller gets any more. */
  readonly failedAlone: (error: unknown) => void;
  readonly aloneMs?: number;
};

/**
 * Yields what is begun here. It goes on to its end when its reader leaves, who waits for that: its signal aborts when the
 * gateway ends, or a while after the caller has left.
 */
export async function* toItsEnd<T>(options: ToItsEnd<T>): AsyncGenerator<T, void> {
  const { begin, caller, closing, failedAlone, aloneMs = defaultAloneMs } = options;
  const alone = new AbortController();
  let timer: Timer | undefined;
  const left = () => {
    timer = startTimer(() => alone.abort(new TapedeckError("not_ready", "it took too long")), aloneMs);
  };
  if (caller.aborted) left();
  else caller.addEventListener("abort", left, { once: true });
  const items = begin(AbortSignal.any([closing, alone.signal]))[Symbol.asyncIterator]();
  let isRead = true;
  try {
    for (let item = await items.next(); item.done !== true; item = await items.next()) {
      isRead = false;
      yield item.value;
      isRead = true;
    }
  } catch (error) {
    if (caller.aborted) failedAlone(error);
    throw error;
  } finally {
    if (!isRead) await runOut(items).catch(failedAlone);
    caller.removeEventListener("abort", left);
    stopTimer(timer);
  }
}

async function runOut(items: AsyncIterator<unknown>): Promise<void> {
  while ((await items.next()).done !== true);
}
