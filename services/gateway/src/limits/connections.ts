import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { type CountedCaller, callerKey } from "./caller.ts";
import type { PerCaller } from "./settings.ts";

export type LiveConnections = {
  /**
   * One more stream or socket of the caller, until `over` aborts.
   * @throws TapedeckError limit_exceeded
   */
  take(caller: CountedCaller, over: AbortSignal): void;
};

/** Nobody knows when one ends; of those whose peer is gone it is found out within 35 s. */
const retrySeconds = 10;

/** Counts live streams and sockets of every caller over all transports. */
export function liveConnections({ most, ...holds }: PerCaller): LiveConnections {
  const open = new Map<string, number>();
  const close = (key: string) => {
    const count = (open.get(key) ?? 0) - 1;
    if (count > 0) open.set(key, count);
    else open.delete(key);
  };
  return {
    take(caller, over) {
      const key = callerKey(caller, holds);
      if (key === undefined || over.aborted) return;
      const count = open.get(key) ?? 0;
      if (count >= most) {
        const message = `more than ${most} live streams and sockets: end one of them first`;
        throw new TapedeckError("limit_exceeded", message, {}, { retryAfter: retrySeconds });
      }
      open.set(key, count + 1);
      over.addEventListener("abort", () => close(key), { once: true });
    },
  };
}
