/** What the time between two looks depends on. */
export type Pace = {
  /** What the answers to the last lists took, the newest last. */
  readonly tookMs: readonly number[];
  /** What each answer about a single thing took that was asked for since. */
  readonly askedMs: readonly number[];
  /** Of that: what an answer takes that costs the host nothing. */
  readonly roundTripMs: number;
  /** What looks may cost of one of the host's processors: 0.02 is 2 %. */
  readonly share: number;
  readonly intervalMs: number;
  /** Something has just changed. */
  readonly isChanging: boolean;
};

/** While something changes; what rkt shows for 100 ms only is missed anyway. */
const busyMs = 200;

/**
 * How long to wait after an answer. Of the last answers the quickest says what a list costs: others may have waited, for
 * a pod that is starting or for a host that is busy elsewhere. The first one is slow anywhere. An answer about a single
 * thing costs no more than the list of all of them: if it took longer, it has waited too.
 */
export function pauseMs({ tookMs, askedMs, roundTripMs, share, intervalMs, isChanging }: Pace): number {
  const listMs = tookMs.length < 2 ? 0 : Math.max(0, Math.min(...tookMs) - roundTripMs);
  const costMs = askedMs.reduce((sum, ms) => sum + Math.min(Math.max(0, ms - roundTripMs), listMs), listMs);
  const wanted = isChanging ? Math.min(busyMs, intervalMs) : intervalMs;
  // A slow server has half of the time for itself.
  return Math.max(wanted, costMs * (1 / share - 1), tookMs.at(-1) ?? 0);
}
