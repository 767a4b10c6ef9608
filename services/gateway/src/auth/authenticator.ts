import type { Caller } from "../call-context.ts";

/** What a request says about its sender. */
export type Credentials = {
  /** The header, or gRPC metadata, of this name. */
  readonly authorization: string | undefined;
  /** The subprotocols that a WebSocket offers: a browser can't set headers. */
  readonly protocols?: readonly string[];
  /** Address and, if known, port. */
  readonly peer: string;
};

/**
 * Identifies the caller of every request on every transport. Another way to identify callers (tokens of an identity
 * provider) is another implementation. The result is valid until the call ends, or until `revoked` aborts.
 * @throws TapedeckError unauthenticated; not_ready when that can't be decided now
 */
export type Authenticator = (credentials: Credentials) => Promise<Caller>;

/** Without authentication, everyone who reaches the port may use one workspace. */
export function everyone(workspace: string): Authenticator {
  return async ({ peer }) => ({ workspace, who: peer });
}
