import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { addressOf } from "./address.ts";
import { type CountedCaller, callerKey } from "./caller.ts";
import type { PerCaller } from "./settings.ts";

export type LiveConnections = {
  /**
   * Counts one more stream or socket of the caller until `over` aborts.
   * @throws TapedeckError limit_exceeded
   */
  take(caller: CountedCaller, over: AbortSignal): void;
};

export type CallerConnectionLimits = {
  /** Limit of one caller at one address. */
  readonly connections: PerCaller;
  /** Limit of one token at all addresses. */
  readonly tokenConnections: number;
};

/** When a connection will end is unknown. One whose peer is gone is noticed within 35 s. */
const retrySeconds = 10;

/**
 * Counts live streams and sockets over all transports. A token is counted per address, so that many people can share a
 * dashboard's token, and over all addresses, so that one token can't use up the gateway.
 */
export function liveConnections({ connections, tokenConnections }: CallerConnectionLimits): LiveConnections {
  const open = new Map<string, number>();
  const close = (key: string) => {
    const count = (open.get(key) ?? 0) - 1;
    if (count > 0) open.set(key, count);
    else open.delete(key);
  };
  return {
    take(counted, over) {
      const key = callerKey(counted, connections);
      if (key === undefined || over.aborted) return;
      const { max } = connections;
      const limits =
        counted.caller.token === undefined
          ? [{ key, max, whose: "" }]
          : [
              { key: `${key} ${addressOf(counted.peer)}`, max, whose: " of this token at one address" },
              { key, max: tokenConnections, whose: " of this token" },
            ];
      for (const limit of limits) {
        if ((open.get(limit.key) ?? 0) < limit.max) continue;
        const message = `more than ${limit.max} live streams and sockets${limit.whose}: close one of them first`;
        throw new TapedeckError("limit_exceeded", message, {}, { retryAfter: retrySeconds });
      }
      for (const limit of limits) open.set(limit.key, (open.get(limit.key) ?? 0) + 1);
      const leave = () => {
        for (const limit of limits) close(limit.key);
      };
      over.addEventListener("abort", leave, { once: true });
    },
  };
}
