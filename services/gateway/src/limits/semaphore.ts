import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { turns } from "@tapedeck/shared/sync/semaphore";

/** Lets so many be at work at once; the rest wait, but not for ever. */
export type WaitingLine = {
  /**
   * Resolves with what ends the turn; the signal ends it, too.
   * @throws TapedeckError limit_exceeded when it was not our turn in time, or the signal aborts before
   */
  take(signal: AbortSignal): Promise<() => void>;
};

export type WaitingLineOptions = {
  readonly atOnce: number;
  readonly patienceMs: number;
  /** What is made in a turn, for people. */
  readonly what: string;
};

export function waitingLine({ atOnce, patienceMs, what }: WaitingLineOptions): WaitingLine {
  const line = turns(atOnce);
  return {
    async take(signal) {
      const endTurn = await line.take(AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]));
      if (endTurn === undefined) {
        const message = `${atOnce} ${what} are being made already, and it took too long to wait: try again`;
        throw new TapedeckError("limit_exceeded", message, {}, { retryAfter: 1 });
      }
      signal.addEventListener("abort", endTurn, { once: true });
      return () => {
        signal.removeEventListener("abort", endTurn);
        endTurn();
      };
    },
  };
}
