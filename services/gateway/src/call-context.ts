import type { CallerKind } from "@tapedeck/shared/audit/caller-kind";
import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { namePart } from "@tapedeck/shared/source";
import type { Role } from "@tapedeck/shared/tokens/token";

/**
 * The context of a call beside its message: the caller, and which source, session and time. It comes from
 * metadata on gRPC, and from query parameters or headers on HTTP.
 */
export type CallContext = Caller & {
  /**
   * Aborts when the call is over: the client is gone, or the answer is complete. Aborts also when the caller's token is over,
   * with the TapedeckError for the client as its reason.
   */
  readonly signal: AbortSignal;
  readonly source?: string;
  /** The listener serves only that source. */
  readonly isBound?: true;
  readonly session?: string;
  readonly at?: string;
  readonly after?: string;
  readonly minPosition?: string;
};

export type { Role };

/** The caller, by the connection and, with authentication, by the token. */
export type Caller = {
  /** The token's workspace; no data of another workspace are accessible. */
  readonly workspace: string;
  /** Peer address or token name, for control records and logs. */
  readonly who: string;
  /** What the caller is, whatever its name looks like; for the audit log. */
  readonly kind: CallerKind;
  /** Id of the token; undefined without authentication. */
  readonly token?: string;
  /** Undefined without authentication, when everything is allowed. */
  readonly roles?: ReadonlySet<Role>;
  /** The caller is an admin of all workspaces. */
  readonly everywhere?: true;
  /** The developer whose work a recorder's token records; undefined: the one that the tap names. */
  readonly developer?: string;
  /** Aborts, with a TapedeckError as its reason, when the token expires or is revoked. */
  readonly revoked?: AbortSignal;
};

/** The call's own signal, which aborts also when its caller's token expires or is revoked. */
export function whileAuthorized(signal: AbortSignal, { revoked }: Pick<Caller, "revoked">): AbortSignal {
  return revoked === undefined ? signal : AbortSignal.any([signal, revoked]);
}

/** Why a caller's token is over; undefined for a call that continues, or that ended for another reason. */
export function revocationOf({ reason }: AbortSignal): TapedeckError | undefined {
  return reason instanceof TapedeckError ? reason : undefined;
}

/** The head of an answer: response metadata on gRPC, headers on HTTP. */
export type AnswerHead = {
  readonly position: string;
  readonly session?: string;
  readonly sessionEnded?: boolean;
  /** For a lost source, or where a list is late: when its upstream was last heard from, RFC 3339. */
  readonly notHeardSince?: string;
  /** When each collection of a polled source was heard last, RFC 3339. */
  readonly heardAt?: Readonly<Record<string, string>>;
};

/** The names that carry the above, the same as gRPC metadata and HTTP headers. */
export const contextNames = {
  source: "tapedeck-source",
  session: "tapedeck-session",
  at: "tapedeck-at",
  after: "tapedeck-after",
  minPosition: "tapedeck-min-position",
} as const;

/** A source in metadata or a header, which are ASCII: a name with other characters comes percent-encoded, as in a URL. */
export function sourceOfHeader(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Names of `headEntries`. */
export const headNames = [
  "tapedeck-position",
  "tapedeck-session",
  "tapedeck-session-ended",
  "tapedeck-not-heard-since",
  "tapedeck-heard-at",
] as const;

export function headEntries(head: AnswerHead): [name: (typeof headNames)[number], value: string][] {
  const entries: ReturnType<typeof headEntries> = [["tapedeck-position", head.position]];
  if (head.session !== undefined && head.session !== "") entries.push(["tapedeck-session", head.session]);
  if (head.sessionEnded === true) entries.push(["tapedeck-session-ended", "true"]);
  if (head.notHeardSince !== undefined) entries.push(["tapedeck-not-heard-since", head.notHeardSince]);
  const heardAt = Object.entries(head.heardAt ?? {}).map(([name, time]) => `${name}=${time}`);
  if (heardAt.length > 0) entries.push(["tapedeck-heard-at", heardAt.join(", ")]);
  return entries;
}

/**
 * The context on a listener that serves only one source (endpoints in tapedeck.yaml). `bound` undefined: the listener
 * serves all sources.
 * @throws TapedeckError invalid_argument when the call names another source
 */
export function boundTo(bound: string | undefined, context: CallContext): CallContext {
  if (bound === undefined) return context;
  if (context.source !== undefined && !isSame(context.source, bound, context.workspace)) {
    const message = `this address serves ${bound} only: request other sources at the gateway's own address`;
    throw invalidArgument(message, "source");
  }
  return { ...context, source: bound, isBound: true };
}

/** Compares the parts that both names have: developer, project, upstream. Without a workspace it is the caller's. */
function isSame(one: string, other: string, workspace: string): boolean {
  const [a, b] = [one, other].map((name) => {
    const parts = name.split("/").map(namePart);
    return parts.length === 4 ? parts : [workspace, ...parts];
  }) as [string[], string[]];
  return a.length > 2 && a.every((part, index) => b[index] === undefined || b[index] === part);
}
