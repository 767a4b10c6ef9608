/**
 * The timeouts along a control call, in ms: client → gateway → ingest → tap → upstream. The outer timeout is the longer
 * one, so that nothing is done for a caller that already got an error.
 */
const turnMs = 5_000;
const tapMs = 35_000;

/** How long each process on the way of a control call waits for the next one. */
export const controlTimeouts = {
  /** Ingest waits this long until the call is sent to the tap: calls run one after the other, and are recorded first. */
  turnMs,
  /** Ingest waits this long for the tap, which gives up on the upstream after 30 s and may be far away. */
  tapMs,
  /** The gateway waits this long for ingest, which also has to record the answer. */
  callerMs: turnMs + tapMs + 5_000,
} as const;
