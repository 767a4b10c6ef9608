import { tokenPrefix } from "@tapedeck/shared/tokens/token";
import type { SignInAudit } from "../../audit/sign-in-audit.ts";
import type { Authenticator } from "../authenticator.ts";
import { bearerOf, unauthenticated } from "../bearer.ts";
import { callerFrom, type Person, personOf } from "./claims.ts";
import type { Deadlines } from "./deadlines.ts";
import type { IdentityProvider } from "./identity-provider.ts";
import type { Sealed } from "./page-session.ts";
import type { ProviderSettings } from "./settings.ts";
import { verifyJwt } from "./verify-jwt.ts";

export type ProviderAuthentication = {
  readonly settings: ProviderSettings;
  readonly provider: IdentityProvider;
  readonly sessions: Sealed<Person>;
  readonly deadlines: Deadlines;
  /** For everything that is no JWT. */
  readonly tokens: Authenticator;
  readonly audit: Pick<SignInAudit, "accepted" | "refused">;
};

/** Three parts, of which the first is a JSON object. */
const jwtShape = /^ey[\w-]*\.[\w-]+\.[\w-]*$/;

/** Tokens of Tapedeck, JWTs of the identity provider, and the page's sessions of those who have signed in there. */
export function providerAuthenticator(options: ProviderAuthentication): Authenticator {
  const { settings, provider, sessions, deadlines, tokens, audit } = options;
  return async (credentials) => {
    const { session, ...others } = credentials;
    if (session !== undefined) {
      const person = await sessions.open(session);
      if (person === undefined) throw unauthenticated("your session on the page is over: sign in again");
      return { ...callerFrom(person, settings), revoked: deadlines.at(person.expiresAtMs) };
    }
    const text = bearerOf(others);
    if (text.startsWith(tokenPrefix) || !jwtShape.test(text)) return tokens(others);
    try {
      const claims = await verifyJwt(text, provider, settings);
      const caller = callerFrom(personOf(claims, settings), settings);
      audit.accepted(caller, "jwt", `${claims.sub} ${claims.exp}`);
      return { ...caller, revoked: deadlines.at(claims.exp * 1_000 + settings.clockSkewMs) };
    } catch (error) {
      audit.refused(error, "jwt", credentials.peer);
      throw error;
    }
  };
}
