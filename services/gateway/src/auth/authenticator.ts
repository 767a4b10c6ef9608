import type { Caller } from "../call-context.ts";

/** A request's credentials. */
export type Credentials = {
  /** The header, or gRPC metadata, of this name. */
  readonly authorization: string | undefined;
  /** The subprotocols that a WebSocket offers: a browser can't set headers. */
  readonly protocols?: readonly string[];
  /** The content of the page's cookie after a sign-in at an identity provider; it counts before the others. */
  readonly session?: string | undefined;
  /** Address and, if known, port. */
  readonly peer: string;
};

/**
 * Identifies the caller of every request on every transport. The result is valid until the call ends, or until `revoked`
 * aborts.
 * @throws TapedeckError unauthenticated; forbidden for people of an identity provider who have no role; not_ready when that
 * can't be decided now
 */
export type Authenticator = (credentials: Credentials) => Promise<Caller>;

/** Without authentication, everyone who reaches the port may use one workspace. */
export function everyone(workspace: string): Authenticator {
  return async ({ peer }) => ({ workspace, who: peer, kind: "address" });
}
