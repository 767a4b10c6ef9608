import type { Message } from "@tapedeck/client";
import { useEffect } from "preact/hooks";
import { historyMs } from "./read-history.ts";
import { errorText, lostSince, serverNow } from "./tapedeck.ts";

const retryMs = 2_000;

/**
 * Runs `read` for as long as a view is shown, again when `keys` change. A read that fails because the gateway is away
 * is repeated: a view that opens while the gateway restarts appears when it is back.
 */
export function useReading(
  keys: readonly unknown[],
  read: (signal: AbortSignal) => Promise<void>,
  failed: (error: string) => void,
): void {
  useEffect(() => {
    const left = new AbortController();
    void untilRead(read, left.signal, failed);
    return () => left.abort();
  }, keys);
}

async function untilRead(
  read: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
  failed: (error: string) => void,
): Promise<void> {
  for (;;) {
    try {
      await read(signal);
      return;
    } catch (error) {
      if (signal.aborted) return;
      if (!isNobodyThere(error)) return failed(errorText(error));
      lostSince.value ??= serverNow();
    }
    await new Promise((resolve) => setTimeout(resolve, retryMs));
    if (signal.aborted) return;
  }
}

/** The value of a part of a view. A refused part has no value and a reason. */
export type Answered<Value> = { readonly value: Value; readonly error: string | undefined };

/** Lets a view show the rest when one part of it is refused. Without a gateway there is no rest. */
export async function answered<Value>(pending: Promise<Value>, nothing: Value, signal: AbortSignal) {
  try {
    return { value: await pending, error: undefined };
  } catch (error) {
    if (signal.aborted || isNobodyThere(error)) throw error;
    return { value: nothing, error: errorText(error) };
  }
}

/** What `fetch` throws, and what a gateway answers that is not ready. */
function isNobodyThere(error: unknown): boolean {
  return error instanceof TypeError || (error instanceof Error && "code" in error && error.code === "not_ready");
}

/** Hands messages on in batches: of history a few, then one for each frame that is drawn however many came. */
export async function inFrames(
  messages: AsyncIterable<Message>,
  signal: AbortSignal,
  handle: (batch: readonly Message[]) => void,
): Promise<void> {
  let batch: Message[] = [];
  let isWaiting = false;
  let isLive = false;
  let flushedAt = Number.NEGATIVE_INFINITY;
  const flush = () => {
    isWaiting = false;
    flushedAt = performance.now();
    const handled = batch;
    batch = [];
    if (!signal.aborted && handled.length > 0) handle(handled);
  };
  for await (const message of messages) {
    batch.push(message);
    isLive ||= message.type === "caught_up";
    if (!isLive && performance.now() - flushedAt < historyMs) continue;
    // A page in the background draws no frames.
    if (document.hidden) flush();
    else if (!isWaiting) {
      isWaiting = true;
      requestAnimationFrame(flush);
    }
  }
  if (batch.length > 0) flush();
}

/** The first items of a list; the rest is not asked for. */
export async function firstOf<Item>(items: AsyncIterable<Item>, max: number): Promise<readonly Item[]> {
  const found: Item[] = [];
  for await (const item of items) {
    if (found.push(item) >= max) break;
  }
  return found;
}
