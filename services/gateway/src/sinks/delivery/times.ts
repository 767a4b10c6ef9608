/** The times of sinks, which tests shorten. */
export type SinkTimes = {
  /** A gateway that does not renew its lease for this time delivers no more. Whole seconds. */
  readonly leaseMs: number;
  readonly renewMs: number;
  /** How often another gateway looks whether the lease is free. */
  readonly pollMs: number;
  /** How long events are gathered for one request. */
  readonly gatherMs: number;
  /** Between two writes of a cursor. */
  readonly cursorMs: number;
  /** The same where nothing was delivered: the cursor passes what is of no interest. */
  readonly passedMs: number;
  /** Between two reports of how far sinks are behind. */
  readonly reportMs: number;
  /** The first and the longest wait after a failure. */
  readonly retryMs: number;
  readonly maxRetryMs: number;
  /** How long a target may take to answer. */
  readonly requestMs: number;
  /** Between two messages about a source in a chat, by when the events were recorded. */
  readonly messageMs: number;
  /** How long after the end of a run it is waited for what another channel of the upstream reports of it. */
  readonly lateMs: number;
};

export const defaultSinkTimes: SinkTimes = {
  leaseMs: 6_000,
  renewMs: 2_000,
  pollMs: 1_000,
  gatherMs: 100,
  cursorMs: 1_000,
  passedMs: 30_000,
  reportMs: 10_000,
  retryMs: 500,
  maxRetryMs: 60_000,
  requestMs: 15_000,
  messageMs: 60_000,
  lateMs: 5_000,
};

/** The bounds of one request, and so of what is in flight: a sink has one request at a time. */
export const maxEventsPerRequest = 100;
export const maxBytesPerRequest = 512 * 1024;

/** How often a target may refuse an event, in about three minutes, before it is parked. */
export const maxTries = 10;

/** After so many failures a batch is halved: one of its events may be the reason. */
export const triesOfBatch = 3;
