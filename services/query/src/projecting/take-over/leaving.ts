import { queryMapMs } from "@tapedeck/shared/log/queries/query-map";

/** How long a gateway may ask the query that had a workspace before: it reads the map again, and waits for its last answer. */
export function leavingMs(queryTimeoutMs: number): number {
  return 2 * queryMapMs + queryTimeoutMs;
}
