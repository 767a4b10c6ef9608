import type { Caller } from "../call-context.ts";

/** What a request shows of who sent it. */
export type Credentials = {
  /** The header, or gRPC metadata, of that name. */
  readonly authorization: string | undefined;
  /** What a WebSocket offers as subprotocols: a browser can't set headers. */
  readonly protocols?: readonly string[];
  /** Address and, where it is known, port. */
  readonly peer: string;
};

/**
 * Says who calls, for every request on every transport. Another way to know callers (tokens of an identity provider) is
 * another one of these. What it gives counts for as long as the call, or until `revoked` aborts.
 * @throws TapedeckError unauthenticated; not_ready when that can't be told now
 */
export type Authenticator = (credentials: Credentials) => Promise<Caller>;

/** Without authentication whoever reaches the port is let in, to one workspace. */
export function everyone(workspace: string): Authenticator {
  return async ({ peer }) => ({ workspace, who: peer });
}
