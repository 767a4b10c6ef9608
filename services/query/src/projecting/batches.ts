import { setImmediate as turn } from "node:timers/promises";
import type { Recorded } from "@tapedeck/shared/log/log";

export type BatchLimits = {
  readonly events: number;
  /** Of originals, which are nearly all of an event. One event always fits. */
  readonly bytes: number;
};

export const defaultLimits: BatchLimits = { events: 1_000, bytes: 8 * 1024 * 1024 };

export type Batch = {
  readonly events: readonly Recorded[];
  /** Everything up to it has been handed out, this batch included; it may lie behind the last event that is kept. */
  readonly caughtUp?: number;
};

/** Opens the stream; `caughtUp` is to be called with the position that it has reached. */
export type OpenStream = (caughtUp: (position: number) => void) => AsyncIterable<Recorded>;

/**
 * Cuts a stream into batches: whatever has come while the last one was worked on, up to the limits. So nothing waits
 * when little comes, and batches are large when much does. Reads ahead by one batch at most.
 */
export async function* batches(
  open: OpenStream,
  limits: BatchLimits,
  signal: AbortSignal,
): AsyncGenerator<Batch, void> {
  let events: Recorded[] = [];
  let bytes = 0;
  let caughtUp: number | undefined;
  let end: { readonly error?: unknown } | undefined;
  const filled = gate();
  const emptied = gate();
  const isFull = () => events.length >= limits.events || bytes >= limits.bytes;

  const pump = async () => {
    try {
      const stream = open((position) => {
        caughtUp = position;
        filled.open();
      });
      for await (const recorded of stream) {
        events.push(recorded);
        bytes += recorded.event.original?.bytes.length ?? 0;
        filled.open();
        while (isFull() && !signal.aborted) await emptied.passed();
        if (signal.aborted) break;
      }
      end = {};
    } catch (error) {
      end = { error };
    }
    filled.open();
  };
  const release = () => {
    emptied.open();
    filled.open();
  };
  signal.addEventListener("abort", release);
  void pump();
  try {
    while (!signal.aborted) {
      if (events.length > 0 || caughtUp !== undefined) {
        await turn(); // what arrived in the same turn belongs together
        const batch = { events, ...(caughtUp !== undefined && { caughtUp }) };
        events = [];
        bytes = 0;
        caughtUp = undefined;
        emptied.open();
        yield batch;
      } else if (end !== undefined) {
        if ("error" in end) throw end.error;
        return;
      } else {
        await filled.passed();
      }
    }
  } finally {
    signal.removeEventListener("abort", release);
  }
}

/** Lets one waiter through per opening; an opening that nobody waits for is kept. */
function gate() {
  let isOpen = false;
  let wake = () => {};
  return {
    open() {
      isOpen = true;
      wake();
    },
    async passed() {
      if (!isOpen) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      isOpen = false;
    },
  };
}
