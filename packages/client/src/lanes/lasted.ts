/** No recorded tool is older. A clock that was never set shows 1970. */
const earliest = Date.UTC(2000, 0);
/** Parallel senders, and machines whose clocks agree well, may stamp an end before its start by less. */
const maxBackwardsMs = 60_000;
const yearMs = 366 * 24 * 3_600_000;
/** These may run for years; a duration of years is wrong for anything else. */
const longLived: ReadonlySet<string> = new Set(["pod", "app", "session"]);

/**
 * Milliseconds between two times, by the rule of the SQL tables. An end that is a little before its start counts as 0.
 * Undefined where either is unknown, and where no right clock can have shown both: a time before 2000, an end more than a
 * minute before its start, or years between them.
 */
export function lastedMs(from: number | undefined, to: number | undefined, kind = ""): number | undefined {
  if (!isPossible(from) || !isPossible(to) || to - from < -maxBackwardsMs) return undefined;
  const ms = Math.max(0, to - from);
  return ms > (longLived.has(kind) ? 20 : 1) * yearMs ? undefined : ms;
}

/** Whether a clock that was set can have shown it. */
export function isPossible(at: number | undefined): at is number {
  return at !== undefined && at >= earliest;
}
