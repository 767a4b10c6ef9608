/**
 * What a call means beside its message (DESIGN 7): who asks, and which source, session and time. On gRPC from
 * metadata, on HTTP from query parameters or headers.
 */
export type CallContext = {
  /** From the token; nothing crosses it. */
  readonly workspace: string;
  /** For control records and logs: peer address or token name. */
  readonly who: string;
  readonly signal: AbortSignal;
  readonly source?: string;
  readonly session?: string;
  readonly at?: string;
  readonly after?: string;
  readonly minPosition?: string;
};

/** Goes with an answer: response metadata on gRPC, headers on HTTP. */
export type AnswerHead = {
  readonly position: string;
  readonly session?: string;
  readonly sessionEnded?: boolean;
};

/** The names that carry the above, the same as gRPC metadata and HTTP headers. */
export const contextNames = {
  source: "tapedeck-source",
  session: "tapedeck-session",
  at: "tapedeck-at",
  after: "tapedeck-after",
  minPosition: "tapedeck-min-position",
} as const;

export function headEntries(head: AnswerHead): [name: string, value: string][] {
  const entries: [string, string][] = [["tapedeck-position", head.position]];
  if (head.session !== undefined && head.session !== "") entries.push(["tapedeck-session", head.session]);
  if (head.sessionEnded === true) entries.push(["tapedeck-session-ended", "true"]);
  return entries;
}
