import type { FastifyRequest } from "fastify";
import type { Credentials } from "../../auth/authenticator.ts";
import type { TokenSeal } from "../../auth/sealed-token.ts";
import { isOwnOrigin } from "./host-origin.ts";

const name = "tapedeck-sign-in";
/** The token ends earlier if it expires or is revoked. */
const maxAgeSeconds = 30 * 24 * 3_600;

export type CookieOptions = { readonly isSecure: boolean; readonly ageSeconds?: number };

/** `value` empty: the cookie that takes the old one away. */
export function signInCookie(value: string, { isSecure, ageSeconds = maxAgeSeconds }: CookieOptions): string {
  const age = value === "" ? 0 : ageSeconds;
  return `${name}=${value}; Path=/; Max-Age=${age}; HttpOnly; SameSite=Strict${isSecure ? "; Secure" : ""}`;
}

/** A request's credentials, beside its address and the subprotocols of a WebSocket. */
export type PresentedLogin = Pick<Credentials, "authorization" | "session">;

/**
 * The header `authorization` of a request, or the content of a signed-in user's cookie: a token, or the session of a
 * person of the identity provider. The cookie counts only where it can change nothing and where this gateway's own page
 * sends it (decision 36); otherwise it is ignored.
 */
export function presentedLogin(request: FastifyRequest, seal: TokenSeal | undefined, isTls: boolean): PresentedLogin {
  const { authorization } = request.headers;
  if (authorization !== undefined) return { authorization };
  const nothing = { authorization: undefined };
  if (seal === undefined || !isReadingOfOwnPage(request, isTls)) return nothing;
  const held = cookieOf(request.headers.cookie ?? "", name);
  if (held === undefined || held === "") return nothing;
  const token = seal.open(held);
  if (token !== undefined) return { authorization: `Bearer ${token}` };
  // A JWE has five parts, and what seals a token makes one.
  return held.includes(".") ? { ...nothing, session: held } : nothing;
}

function isReadingOfOwnPage({ method, headers }: FastifyRequest, isTls: boolean): boolean {
  if (method !== "GET") return false;
  const { origin, host, referer, upgrade, "sec-fetch-site": site } = headers;
  if (origin !== undefined && !isOwnOrigin(origin, host, isTls)) return false;
  // Browsers send the origin of every WebSocket. SameSite does not distinguish ports, and CORS does not cover sockets.
  if (upgrade !== undefined) return origin !== undefined;
  if (site !== undefined) return site === "same-origin";
  // Browsers leave out sec-fetch-site where there is neither TLS nor loopback.
  return origin !== undefined || (referer !== undefined && isOwnOrigin(referer, host, isTls));
}

export function cookieOf(header: string, cookie: string): string | undefined {
  const found = header.split(";").map((pair) => pair.trim());
  return found.find((pair) => pair.startsWith(`${cookie}=`))?.slice(cookie.length + 1);
}
