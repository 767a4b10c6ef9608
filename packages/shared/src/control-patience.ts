/**
 * How long those on the way of a control call wait, in ms: client → gateway → ingest → tap → upstream. The longer way
 * has the longer patience, so that nothing is done for a caller who was told already that it failed.
 */
const turnMs = 5_000;
const tapMs = 35_000;

export const controlPatience = {
  /** In ingest, until the call is sent to the tap: calls go one after the other, and are recorded before. */
  turnMs,
  /** Ingest for the tap, which gives up on the upstream after 30 s and may be far away. */
  tapMs,
  /** The gateway for ingest, which also has to record the answer. */
  callerMs: turnMs + tapMs + 5_000,
} as const;
