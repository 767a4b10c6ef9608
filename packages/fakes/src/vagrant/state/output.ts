import type { GetJobStreamResponse_Terminal_Event as TerminalEvent } from "@tapedeck/proto/vagrant/vagrant";

/** How many events are kept: 32 chunks of 164. */
export const windowSize = 5_248;

/** The output of a job's runner: the window that is being filled. */
export type Output = {
  readonly write: (event: TerminalEvent) => void;
  /** From the start of the window: a late reader gets the total's rest of the division by `windowSize`. */
  readonly read: () => OutputReader;
  /** All that was ever written. */
  readonly total: () => number;
};

/**
 * Keeps its window until it has read all of it, so a reader misses nothing unless it falls more than a window behind;
 * then it continues with the newest one, without notice.
 */
export type OutputReader = {
  /** Events that were there when it began, and that it has not read yet. */
  readonly buffered: () => number;
  /** The next events, from the buffered ones alone as long as there are any. Empty: the reader has read all. */
  readonly next: (max: number) => TerminalEvent[];
};

export function makeOutput(): Output {
  let window: TerminalEvent[] = [];
  let total = 0;
  return {
    total: () => total,
    write(event) {
      total++;
      window.push(event);
      if (window.length === windowSize) window = [];
    },
    read() {
      let reading = window;
      let at = 0;
      let buffered = reading.length;
      return {
        buffered: () => buffered,
        next(max) {
          if (at === windowSize && reading !== window) {
            reading = window;
            at = 0;
          }
          const events = reading.slice(at, at + (buffered > 0 ? Math.min(max, buffered) : max));
          at += events.length;
          buffered = Math.max(0, buffered - events.length);
          return events;
        },
      };
    },
  };
}
