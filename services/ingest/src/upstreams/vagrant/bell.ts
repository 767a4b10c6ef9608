import { status } from "@grpc/grpc-js";
import { pause } from "@tapedeck/shared/streams/pause";

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

/** Between a call that failed with this code and the next one. A server that hangs is not asked more often for a bell. */
export function restAfter(
  code: number,
  ms: number,
  { bell, signal }: { readonly bell: Bell; readonly signal: AbortSignal },
): Promise<void> {
  return code === status.DEADLINE_EXCEEDED ? pause(ms, signal) : bell.pause(ms);
}
