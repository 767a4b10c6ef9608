import type { Recorded } from "@tapedeck/shared/log/log";
import { pause } from "@tapedeck/shared/sync/delay";

/** As many as the real server sends at once. */
const mostItems = 64;

/** A message grows no further than this: clients take 4 MiB by default. One item always fits. */
const mostBytes = 1 << 20;

/** Puts encoded items together in messages. */
export function batches(messageOf: (items: readonly Uint8Array[]) => Uint8Array) {
  let items: Uint8Array[] = [];
  let bytes = 0;

  /** What is left. */
  function* rest(): Generator<Uint8Array, void> {
    if (items.length === 0) return;
    const message = messageOf(items);
    items = [];
    bytes = 0;
    yield message;
  }

  return {
    rest,
    /** Gives the message that has no room for this one. */
    *add(item: Uint8Array): Generator<Uint8Array, void> {
      if (items.length === mostItems || bytes + item.byteLength > mostBytes) yield* rest();
      items.push(item);
      bytes += item.byteLength;
    },
  };
}

/** The events of a reader of the log that is given what it calls when there is nothing more for now. */
export type Following = (options: {
  readonly signal: AbortSignal;
  readonly reached: () => void;
}) => AsyncGenerator<Recorded, void>;

/**
 * What is followed, and undefined after it whenever there is nothing more for now; once more when the time that `again`
 * gives then, in milliseconds, went by and still nothing came.
 */
export async function* withPauses(
  following: Following,
  signal: AbortSignal,
  again: () => number | undefined = () => undefined,
): AsyncGenerator<Recorded | undefined, void> {
  const left = new AbortController();
  const over = AbortSignal.any([signal, left.signal]);
  let nothingMore = Promise.withResolvers<"nothing">();
  const events = following({ signal: over, reached: () => nothingMore.resolve("nothing") });
  try {
    for (;;) {
      nothingMore = Promise.withResolvers();
      const next = events.next();
      const came = new AbortController();
      try {
        const unneeded = AbortSignal.any([over, came.signal]);
        for (let waiting = nothingMore.promise; ; waiting = pausing(again(), unneeded)) {
          if ((await Promise.race([next, waiting])) !== "nothing" || over.aborted) break;
          yield undefined;
        }
      } finally {
        came.abort();
      }
      const { done, value } = await next;
      if (done === true) return;
      yield value;
    }
  } finally {
    left.abort();
  }
}

function pausing(ms: number | undefined, signal: AbortSignal): Promise<"nothing"> {
  return ms === undefined ? new Promise(() => {}) : pause(ms, signal).then(() => "nothing" as const);
}
