import type { KnownTokens } from "@tapedeck/shared/tokens/known-tokens";
import type { Authenticator } from "./authenticator.ts";
import { bearerOf } from "./bearer.ts";

/** Tapedeck's own tokens. */
export function tokenAuthenticator(tokens: Pick<KnownTokens, "find">): Authenticator {
  return async (credentials) => {
    const { record, over } = await tokens.find(bearerOf(credentials));
    return {
      workspace: record.workspace,
      who: record.machine ? `${record.name} (machine)` : record.name,
      kind: record.machine ? "machine" : "token",
      token: record.id,
      roles: new Set(record.roles),
      revoked: over,
      ...(record.everywhere && { everywhere: record.everywhere }),
      ...(record.developer !== undefined && { developer: record.developer }),
    };
  };
}
