import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { namePart } from "@tapedeck/shared/source";
import type { Role } from "@tapedeck/shared/tokens/token";

/**
 * What a call means beside its message (DESIGN 7): who asks, and which source, session and time. On gRPC from
 * metadata, on HTTP from query parameters or headers.
 */
export type CallContext = Caller & {
  /**
   * Aborts when the call is over: the client is gone, or all is answered; or its caller is let in no more: then with the
   * TapedeckError to tell as its reason.
   */
  readonly signal: AbortSignal;
  readonly source?: string;
  readonly session?: string;
  readonly at?: string;
  readonly after?: string;
  readonly minPosition?: string;
};

export type { Role };

/** Who calls: from the connection and, where there is authentication, the token. */
export type Caller = {
  /** From the token; nothing crosses it. */
  readonly workspace: string;
  /** For control records and logs: peer address or token name. */
  readonly who: string;
  /** Id of the token; undefined without authentication. */
  readonly token?: string;
  /** Undefined without authentication: everything is allowed then. */
  readonly roles?: ReadonlySet<Role>;
  /** An admin also of what concerns all workspaces. */
  readonly everywhere?: true;
  /** Whose work a recorder's token records; undefined: whom the tap names. */
  readonly developer?: string;
  /** Aborts, with a TapedeckError as its reason, when the token expires or is revoked. */
  readonly revoked?: AbortSignal;
};

/** The call's own signal, which aborts as well when its caller's token expires or is revoked. */
export function whileLetIn(signal: AbortSignal, { revoked }: Pick<Caller, "revoked">): AbortSignal {
  return revoked === undefined ? signal : AbortSignal.any([signal, revoked]);
}

/** Why a caller is let in no more; undefined for a call that goes on, or ended otherwise. */
export function revocationOf({ reason }: AbortSignal): TapedeckError | undefined {
  return reason instanceof TapedeckError ? reason : undefined;
}

/** Goes with an answer: response metadata on gRPC, headers on HTTP. */
export type AnswerHead = {
  readonly position: string;
  readonly session?: string;
  readonly sessionEnded?: boolean;
  /** RFC 3339: the source is lost. */
  readonly notHeardSince?: string;
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
  if (head.notHeardSince !== undefined) entries.push(["tapedeck-not-heard-since", head.notHeardSince]);
  return entries;
}

/**
 * What a call means on a listener that serves only one source (endpoints in tapedeck.yaml); `bound` undefined: on one
 * that serves all.
 * @throws TapedeckError invalid_argument when the call names another source
 */
export function boundTo(bound: string | undefined, context: CallContext): CallContext {
  if (bound === undefined) return context;
  if (context.source !== undefined && !isSame(context.source, bound, context.workspace)) {
    const message = `this address serves ${bound} only: ask for another source at the gateway's own address`;
    throw invalidArgument(message, "source");
  }
  return { ...context, source: bound };
}

/** As far as both names say it: developer, project, upstream; in full the workspace as well, which else is the caller's. */
function isSame(one: string, other: string, workspace: string): boolean {
  const [a, b] = [one, other].map((name) => {
    const parts = name.split("/").map(namePart);
    return parts.length === 4 ? parts : [workspace, ...parts];
  }) as [string[], string[]];
  return a.length > 2 && a.every((part, index) => b[index] === undefined || b[index] === part);
}
