const maxReasonLength = 10_000;

/** Reasons come from upstreams and taps. Shortens them so that the event always fits the log. */
export function shorten(reason: string): string {
  return reason.length <= maxReasonLength ? reason : `${reason.slice(0, maxReasonLength - 1).toWellFormed()}…`;
}
