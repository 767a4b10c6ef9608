import type { FastifyRequest } from "fastify";
import type { TokenSeal } from "../../auth/sealed-token.ts";
import { isOwnOrigin } from "./host-origin.ts";

const name = "tapedeck-sign-in";
/** The token ends earlier if it expires or is revoked. */
const maxAgeSeconds = 30 * 24 * 3_600;

/** `value` empty: the cookie that takes the old one away. */
export function signInCookie(value: string, { isSecure }: { readonly isSecure: boolean }): string {
  const age = value === "" ? 0 : maxAgeSeconds;
  return `${name}=${value}; Path=/; Max-Age=${age}; HttpOnly; SameSite=Strict${isSecure ? "; Secure" : ""}`;
}

/**
 * The header `authorization` of a request, or what the cookie of somebody who has signed in stands for. The cookie counts
 * only where it can change nothing and where this gateway's own page sends it (decision 36); otherwise it is ignored.
 */
export function authorizationOf(
  request: FastifyRequest,
  seal: TokenSeal | undefined,
  isTls: boolean,
): string | undefined {
  const { authorization } = request.headers;
  if (authorization !== undefined || !isReadingOfOwnPage(request, isTls)) return authorization;
  const sealed = cookieOf(request.headers.cookie ?? "");
  const token = sealed === undefined ? undefined : seal?.open(sealed);
  return token === undefined ? undefined : `Bearer ${token}`;
}

function isReadingOfOwnPage({ method, headers }: FastifyRequest, isTls: boolean): boolean {
  if (method !== "GET") return false;
  const { origin, host, referer, upgrade, "sec-fetch-site": site } = headers;
  if (origin !== undefined && !isOwnOrigin(origin, host, isTls)) return false;
  // Browsers name the origin of every WebSocket. SameSite does not tell ports apart, and CORS does not hold for sockets.
  if (upgrade !== undefined) return origin !== undefined;
  if (site !== undefined) return site === "same-origin";
  // Browsers leave out sec-fetch-site where there is neither TLS nor loopback.
  return origin !== undefined || (referer !== undefined && isOwnOrigin(referer, host, isTls));
}

function cookieOf(header: string): string | undefined {
  const found = header.split(";").map((pair) => pair.trim());
  return found.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1);
}
