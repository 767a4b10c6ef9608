import { TapedeckError } from "@tapedeck/shared/errors/errors";
import * as openid from "openid-client";
import type { SignInAudit } from "../../audit/sign-in-audit.ts";
import type { Caller } from "../../call-context.ts";
import { unauthenticated } from "../bearer.ts";
import { requireRole } from "../roles.ts";
import { callerFrom, type Person, personOf } from "./claims.ts";
import type { IdentityProvider } from "./identity-provider.ts";
import type { Sealed, StartedSignIn } from "./page-session.ts";
import type { PageSignInSettings, ProviderSettings } from "./settings.ts";

export const callbackPath = "/api/v1/sign-in/callback";

/** How long a person may take to sign in at the provider. */
export const signInTimeoutMs = 10 * 60_000;

export type SignedIn = {
  readonly caller: Caller;
  /** For the page's cookie. */
  readonly session: string;
  /** The path of the page to continue at. */
  readonly to: string;
};

/** The parameters with which a browser comes back from the provider. */
export type SignInAnswer = {
  /** Path and query. */
  readonly url: string;
  /** From the cookie. */
  readonly started: string | undefined;
  /** The browser's address. */
  readonly peer: string;
};

/** Signing in on the page by the provider: the authorization code flow with PKCE, state and nonce. */
export type PageSignIn = {
  /** Where to send the browser, and what it has to bring back in a cookie. `to`: where to continue, checked here. */
  begin(to: string): Promise<{ readonly location: URL; readonly started: string }>;
  finish(answer: SignInAnswer): Promise<SignedIn>;
};

export type PageSignInDeps = {
  readonly settings: ProviderSettings;
  readonly page: PageSignInSettings;
  readonly provider: IdentityProvider;
  readonly sessions: Sealed<Person>;
  readonly startedSignIns: Sealed<StartedSignIn>;
  readonly audit: SignInAudit;
};

/** Everything throws TapedeckError. */
export function pageSignIn(deps: PageSignInDeps): PageSignIn {
  const { settings, page, provider, sessions, startedSignIns, audit } = deps;
  const answered = new AnsweredSignIns();

  async function signedIn({ url, started }: SignInAnswer): Promise<SignedIn> {
    const expected = started === undefined ? undefined : await startedSignIns.open(started);
    if (expected === undefined) {
      throw unauthenticated(
        `this browser has started no sign-in at ${page.origin} in the last 10 minutes: start again there`,
      );
    }
    if (!answered.take(expected.state)) {
      throw unauthenticated(`this sign-in at ${page.origin} has already been completed: start again there`);
    }
    const claims = await claimsFor(await provider.configuration(), new URL(url, page.origin), expected);
    const person = personOf(claims, settings);
    const caller = callerFrom(person, settings);
    requireRole("viewer", caller);
    return { caller, session: await sessions.seal(person, page.sessionMs), to: expected.to };
  }

  return {
    async begin(to) {
      const configuration = await provider.configuration();
      const verifier = openid.randomPKCECodeVerifier();
      const [state, nonce] = [openid.randomState(), openid.randomNonce()];
      const location = openid.buildAuthorizationUrl(configuration, {
        state,
        nonce,
        scope: page.scopes.join(" "),
        redirect_uri: page.origin + callbackPath,
        code_challenge: await openid.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
      });
      const value = { state, nonce, verifier, to: ownPath(to, page.origin) };
      return { location, started: await startedSignIns.seal(value, signInTimeoutMs) };
    },

    async finish(answer) {
      try {
        const done = await signedIn(answer);
        audit.accepted(done.caller, "page");
        return done;
      } catch (error) {
        audit.refused(error, "page", answer.peer);
        throw error;
      }
    },
  };
}

/**
 * Lets each sign-in be answered once at this gateway, so that one cookie cannot make it query the provider repeatedly.
 * Beyond a bound it forgets the oldest, which expire by themselves.
 */
class AnsweredSignIns {
  readonly #states = new Set<string>();

  take(state: string): boolean {
    if (this.#states.has(state)) return false;
    const [oldest] = this.#states;
    if (this.#states.size >= maxAnswered && oldest !== undefined) this.#states.delete(oldest);
    this.#states.add(state);
    return true;
  }
}

const maxAnswered = 10_000;

/** The claims of the ID token that the provider gives for the code in `answer`. */
async function claimsFor(configuration: openid.Configuration, answer: URL, expected: StartedSignIn) {
  try {
    const tokens = await openid.authorizationCodeGrant(configuration, answer, {
      pkceCodeVerifier: expected.verifier,
      expectedState: expected.state,
      expectedNonce: expected.nonce,
      idTokenExpected: true,
    });
    return tokens.claims() ?? {};
  } catch (error) {
    throw signInError(error);
  }
}

/** The provider's error text is not repeated: a link crafted by a third party could contain anything. */
function signInError(error: unknown): TapedeckError {
  const options = { cause: error };
  if (error instanceof openid.AuthorizationResponseError) {
    const code = /^[a-z_]{1,40}$/.test(error.error) ? ` (${error.error})` : "";
    return new TapedeckError("forbidden", `the identity provider refused the sign-in${code}`, {}, options);
  }
  if (error instanceof openid.ResponseBodyError) {
    const message = `the identity provider did not accept the sign-in (${error.error}): start again, or check oidc.clientId and oidc.clientSecret`;
    return new TapedeckError("unauthenticated", message, {}, options);
  }
  if (isAway(error)) {
    return new TapedeckError(
      "not_ready",
      "the identity provider does not answer now: start again in a moment",
      {},
      options,
    );
  }
  const message =
    "the identity provider's answer does not belong to the sign-in that this browser started: start again";
  return new TapedeckError("unauthenticated", message, {}, options);
}

function isAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, cause } = error as Error & { readonly code?: unknown };
  return code === "OAUTH_TIMEOUT" || (error instanceof TypeError && error.message === "fetch failed") || isAway(cause);
}

/** A path of the page; "/" for everything else, such as a foreign address or the API. */
export function ownPath(to: string, origin: string): string {
  const url = to.startsWith("/") ? URL.parse(to, origin) : null;
  if (url === null || url.origin !== origin || /^\/+api(\/|$)/i.test(url.pathname)) return "/";
  // A path that begins with two slashes would be another host's.
  return url.pathname.replace(/^\/+/, "/") + url.search;
}
