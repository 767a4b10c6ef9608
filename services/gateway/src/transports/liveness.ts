import type { Liveness } from "@tapedeck/shared/service/peer-liveness";

/** WebSocket peers that are gone are found within 35 s, a farewell included. */
export const liveness: Liveness = { quietMs: 15_000, silentMs: 34_000 };

export type Heartbeat = {
  /** The peer gave a sign of life. */
  readonly alive: () => void;
  readonly stop: () => void;
};

/** Asks a peer once it has been quiet for long enough, and says when it was silent for too long: once, then no more. */
export function heartbeat({ quietMs, silentMs }: Liveness, ask: () => void, gone: () => void): Heartbeat {
  let timer: NodeJS.Timeout;
  let stopped = false;
  const waitForWord = () => {
    timer = setTimeout(() => {
      ask();
      timer = setTimeout(gone, silentMs - quietMs);
    }, quietMs);
  };
  waitForWord();
  return {
    alive() {
      if (stopped) return;
      clearTimeout(timer);
      waitForWord();
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
