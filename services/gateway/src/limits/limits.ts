import { type LiveConnections, liveConnections } from "./connections.ts";
import { type RequestBudget, requestBudget } from "./requests.ts";
import type { Limits } from "./settings.ts";

/** The limits of this process, and what its callers have used up of theirs, whatever the listener and the transport. */
export type CallerLimits = Limits & { readonly requests: RequestBudget; readonly live: LiveConnections };

export function callerLimits(limits: Limits): CallerLimits {
  return {
    ...limits,
    requests: requestBudget(limits.requestsPerSecond),
    live: liveConnections(limits.connections),
  };
}
