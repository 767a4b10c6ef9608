import { status } from "@grpc/grpc-js";
import { backoff, pause } from "@tapedeck/shared/sync/delay";

/** Ends a pause early. */
export type Bell = {
  /** Ends the pause that there is, or else the next one before it begins. */
  readonly ring: () => void;
  /** Resolves after so many ms, or when it is rung. */
  readonly pause: (ms: number) => Promise<void>;
};

export function bell(): Bell {
  let isRung = false;
  let wake = () => {};
  return {
    ring() {
      isRung = true;
      wake();
    },
    async pause(ms) {
      if (!isRung) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      isRung = false;
    },
  };
}

/** After an error. A call that we gave up goes on inside the server: they must not become many. */
const failedMs = { first: 250, longest: 30_000 };

/** Longer and longer pauses between calls that fail. A server that hangs is not asked more often because of a bell. */
export function failurePauses(bell: Bell, signal: AbortSignal) {
  const next = backoff(failedMs.first, failedMs.longest);
  return {
    after: (code: number): Promise<void> => {
      const ms = next.next();
      return code === status.DEADLINE_EXCEEDED ? pause(ms, signal) : bell.pause(ms);
    },
    /** One was good. */
    reset: next.reset,
  };
}
