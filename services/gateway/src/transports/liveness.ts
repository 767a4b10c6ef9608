import type { Liveness } from "@tapedeck/shared/service/peer-liveness";

/** WebSocket peers that are gone are found within 35 s, including the farewell. */
export const liveness: Liveness = { quietMs: 15_000, silentMs: 34_000 };

export type Heartbeat = {
  /** To be called for every sign of life of the peer. */
  readonly alive: () => void;
  readonly stop: () => void;
};

/** Calls `ask` when a peer has been quiet for long enough, and `gone` once when it was silent for too long. */
export function heartbeat({ quietMs, silentMs }: Liveness, ask: () => void, gone: () => void): Heartbeat {
  let timer: NodeJS.Timeout;
  let stopped = false;
  const startWaiting = () => {
    timer = setTimeout(() => {
      ask();
      timer = setTimeout(gone, silentMs - quietMs);
    }, quietMs);
  };
  startWaiting();
  return {
    alive() {
      if (stopped) return;
      clearTimeout(timer);
      startWaiting();
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
