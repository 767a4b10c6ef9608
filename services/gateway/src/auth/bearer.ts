import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { Credentials } from "./authenticator.ts";

/** A WebSocket's subprotocol that carries a token: the server never answers with it. */
export const bearerProtocol = "tapedeck.bearer.";

/**
 * The bearer token of a request. The header wins over the subprotocol.
 * @throws TapedeckError unauthenticated
 */
export function bearerOf({ authorization, protocols = [] }: Credentials): string {
  if (authorization !== undefined) {
    // Vagrant's clients send the token alone (VAGRANT_SERVER_TOKEN).
    const [, bearer, token = bearer] = /^(?:Bearer +(\S+)|(tdk_\S+)) *$/i.exec(authorization) ?? [];
    if (token === undefined) throw unauthenticated('authorization is not "Bearer <token>"');
    return token;
  }
  const offered = protocols.find((protocol) => protocol.startsWith(bearerProtocol));
  if (offered === undefined) {
    throw unauthenticated(
      "a token is needed: send `authorization: Bearer tdk_…` (Tapedeck's own programs have it from `tapedeck login` or TAPEDECK_TOKEN)",
    );
  }
  return offered.slice(bearerProtocol.length);
}

/** The error for a caller whose credentials are missing or wrong. */
export function unauthenticated(message: string): TapedeckError {
  return new TapedeckError("unauthenticated", message);
}
