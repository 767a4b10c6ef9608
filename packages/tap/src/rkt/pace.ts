/** The parameters of the delay between two polls. */
export type PollPace = {
  /** How long the last lists took to be answered, the newest last. */
  readonly tookMs: readonly number[];
  /** How long each request for a single record took since the last list. */
  readonly inspectMs: readonly number[];
  /** The part of these times that costs the host nothing. */
  readonly roundTripMs: number;
  /** The share of one of the host's processors that polling may cost: 0.02 is 2 %. */
  readonly share: number;
  readonly intervalMs: number;
  /** Something has changed in one of the last polls. */
  readonly isChanging: boolean;
};

/** While something changes. A shorter delay gains nothing: a state that rkt shows for 100 ms only is missed anyway. */
const busyMs = 200;

/**
 * The delay after an answer. The quickest of the last answers shows what a list costs, because others may have waited
 * for a pod that is starting or for a host that is busy elsewhere. The first answer is slow on any host and does not
 * count. A single record costs no more than the list of all: a request that took longer has waited, too.
 */
export function delayMs({ tookMs, inspectMs, roundTripMs, share, intervalMs, isChanging }: PollPace): number {
  const listMs = tookMs.length < 2 ? 0 : Math.max(0, Math.min(...tookMs) - roundTripMs);
  const costMs = inspectMs.reduce((sum, ms) => sum + Math.min(Math.max(0, ms - roundTripMs), listMs), listMs);
  const delayMs = isChanging ? Math.min(busyMs, intervalMs) : intervalMs;
  // A slow server gets at least half of the time for its own work.
  return Math.max(delayMs, costMs * (1 / share - 1), tookMs.at(-1) ?? 0);
}
