import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { errors, type JWTPayload, jwtVerify } from "jose";
import { unauthenticated } from "../bearer.ts";
import type { IdentityProvider } from "./identity-provider.ts";
import type { ProviderSettings } from "./settings.ts";

/** Signatures that only the provider can make: never `none`, and no HMAC, whose key the verifier would have to share. */
const algorithms = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];

/** Access tokens (RFC 9068), and what providers from before it send. Not logout tokens. */
const types: ReadonlySet<string> = new Set(["jwt", "at+jwt", "application/at+jwt"]);

export type VerifiedJwt = JWTPayload & { readonly exp: number; readonly sub: string };

/**
 * The claims of a JWT that the provider has signed for this Tapedeck, and that is valid now.
 * @throws TapedeckError unauthenticated; not_ready while the provider has never been reached
 */
export async function verifyJwt(
  jwt: string,
  provider: IdentityProvider,
  { audience, clockSkewMs }: Pick<ProviderSettings, "audience" | "clockSkewMs">,
): Promise<VerifiedJwt> {
  const { issuer } = (await provider.configuration()).serverMetadata();
  try {
    const { payload, protectedHeader } = await jwtVerify(jwt, provider.keyOf, {
      issuer,
      audience,
      algorithms,
      clockTolerance: clockSkewMs / 1_000,
      requiredClaims: ["exp", "sub"],
    });
    const { typ = "JWT" } = protectedHeader;
    if (!types.has(typ.toLowerCase())) throw unauthenticated(`a JWT of type "${typ}" is not one for an API`);
    if (typeof payload.sub !== "string" || payload.sub === "") throw unauthenticated('the JWT has an empty "sub"');
    return payload as VerifiedJwt;
  } catch (error) {
    if (error instanceof TapedeckError) throw error;
    if (error instanceof errors.JOSEError) throw unauthenticated(sentence(error, { issuer, audience }));
    throw error;
  }
}

function sentence(error: errors.JOSEError, { issuer, audience }: { issuer: string; audience: string }): string {
  if (error instanceof errors.JWTExpired) return "the JWT has expired: get a new one from the identity provider";
  if (error instanceof errors.JWTClaimValidationFailed) {
    switch (error.claim) {
      case "iss":
        return `the JWT is not from the identity provider ${issuer}`;
      case "aud":
        return `the JWT is not for this Tapedeck: its "aud" lacks "${audience}"`;
      case "nbf":
        return "the JWT is not valid yet, by this machine's clock";
      default:
        return `the JWT's claim "${error.claim}" is missing or wrong`;
    }
  }
  if (error instanceof errors.JWSSignatureVerificationFailed) return "the JWT's signature is wrong";
  if (error instanceof errors.JWKSNoMatchingKey) {
    return "the JWT is signed with a key that the identity provider does not publish; if it has just changed its keys, try again in 10 s";
  }
  if (error instanceof errors.JOSEAlgNotAllowed || error instanceof errors.JOSENotSupported) {
    return `the JWT is not signed with one of ${algorithms.join(", ")}`;
  }
  return "this is not a JWT of the identity provider, and no token of Tapedeck either (those begin with tdk_)";
}
