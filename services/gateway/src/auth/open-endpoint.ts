import { namePart } from "@tapedeck/shared/source";
import type { Authenticator } from "./authenticator.ts";
import { bearerProtocol } from "./bearer.ts";

/**
 * Authenticates at an endpoint that is open to clients which can send no token. A caller without one may only read, in the
 * workspace of the endpoint's source, with the limits of a token (see limits/caller.ts). A token counts as it does anywhere.
 */
export function openEndpoint(source: string, workspace: string, authenticate: Authenticator): Authenticator {
  const parts = source.split("/");
  const own = namePart(parts.length === 4 ? (parts[0] ?? "") : workspace);
  return async (credentials) => {
    const { authorization, protocols = [], peer } = credentials;
    const hasToken = authorization !== undefined || protocols.some((name) => name.startsWith(bearerProtocol));
    return hasToken
      ? authenticate(credentials)
      : { workspace: own, who: peer, kind: "address", roles: new Set(["viewer"]) };
  };
}
