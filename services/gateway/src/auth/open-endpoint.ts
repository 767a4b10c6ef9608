import { namePart } from "@tapedeck/shared/source";
import type { Authenticator } from "./authenticator.ts";
import { bearerProtocol } from "./bearer.ts";

/**
 * Of an endpoint that is open to clients which can send no token: who shows none may read, and no more, in the workspace of
 * the endpoint's source, as much as a token may (see limits/caller.ts). A token that is shown counts as everywhere.
 */
export function openEndpoint(source: string, workspace: string, authenticate: Authenticator): Authenticator {
  const parts = source.split("/");
  const own = namePart(parts.length === 4 ? (parts[0] ?? "") : workspace);
  return async (credentials) => {
    const { authorization, protocols = [], peer } = credentials;
    const isShown = authorization !== undefined || protocols.some((name) => name.startsWith(bearerProtocol));
    return isShown ? authenticate(credentials) : { workspace: own, who: peer, roles: new Set(["viewer"]) };
  };
}
