import { type LiveConnections, liveConnections } from "./connections.ts";
import { type RequestBudget, requestBudget } from "./requests.ts";
import { type TimedSemaphore, timedSemaphore } from "./semaphore.ts";
import type { Limits } from "./settings.ts";

/** The limits of this process, and what is used up of them, whatever the listener and the transport. */
export type CallerLimits = Omit<Limits, "pages" | "largeAnswers"> & {
  readonly requests: RequestBudget;
  readonly live: LiveConnections;
  readonly pages: TimedSemaphore;
  readonly largeAnswers: TimedSemaphore;
};

export function callerLimits(limits: Limits): CallerLimits {
  const { pages, largeAnswers, queryMs: timeoutMs } = limits;
  return {
    ...limits,
    requests: requestBudget(limits.requestsPerSecond),
    live: liveConnections(limits),
    pages: timedSemaphore({ atOnce: pages, timeoutMs, what: "pages of events" }),
    largeAnswers: timedSemaphore({ atOnce: largeAnswers, timeoutMs, what: "large answers" }),
  };
}
