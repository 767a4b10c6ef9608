import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { type CountedCaller, callerKey } from "./caller.ts";
import { type Count, inSeconds, rate } from "./rate.ts";
import type { PerCaller } from "./settings.ts";

/** One budget for HTTP requests, gRPC calls and WebSocket messages together. */
export type RequestBudget = {
  readonly perSecond: number;
  /** The key under which a caller is counted; undefined: this caller has no limit. */
  keyOf(caller: CountedCaller): string | undefined;
  count(key: string): Promise<Count>;
  /** The error for a caller over its budget. */
  refusal(count: Pick<Count, "leftMs">): TapedeckError;
  /** Counts one more request. @throws TapedeckError limit_exceeded */
  take(caller: CountedCaller): Promise<void>;
};

export function requestBudget({ max, ...holds }: PerCaller): RequestBudget {
  const { count } = rate(1);
  const keyOf = (caller: CountedCaller) => callerKey(caller, holds);
  const refusal = (now: Pick<Count, "leftMs">) => {
    const message = `more than ${max} requests in a second: wait before the next request`;
    return new TapedeckError("limit_exceeded", message, {}, { retryAfter: inSeconds(now) });
  };
  return {
    perSecond: max,
    keyOf,
    count,
    refusal,
    async take(caller) {
      const key = keyOf(caller);
      if (key === undefined) return;
      const now = await count(key);
      if (now.used > max) throw refusal(now);
    },
  };
}
