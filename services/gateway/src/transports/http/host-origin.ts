import type { IncomingHttpHeaders } from "node:http";
import { hostName, isAllowedHost } from "@tapedeck/shared/service/host-names";
import { isOriginNamed } from "../origins.ts";

export type AllowedNames = {
  /** Host names beside loopback, as in the Host header without a port. */
  readonly hosts: readonly string[];
  /** Origins, "https://dash.example.com", or patterns of them: see origins.ts. */
  readonly origins: readonly string[];
};

export type Refusal = {
  readonly message: string;
  /** It is for the page's origin alone: the page may know that, and reads nothing else. */
  readonly ofOrigin: boolean;
};

/**
 * Why a request is refused, or undefined. Skaffold's server has no such check (docs/upstreams/skaffold.md#server), so any
 * web page can POST to it; here a page from elsewhere gets nothing, GET included, and a name that was rebound to this
 * machine neither.
 * Requests without Origin (curl, gRPC, IDEs) pass.
 */
export function refusalOf(
  headers: IncomingHttpHeaders,
  allowed: AllowedNames,
  { isTls = false }: { readonly isTls?: boolean } = {},
): Refusal | undefined {
  const refused = (message: string, ofOrigin = false) => ({ message, ofOrigin });
  if (!isAllowedHost(headers.host, allowed.hosts)) {
    const name = hostName(headers.host);
    return refused(`Host "${name}" is not allowed: add it to gateway.hosts (TAPEDECK_GATEWAY_HOSTS)`);
  }
  const { origin } = headers;
  if (origin !== undefined) {
    if (isOwnOrigin(origin, headers.host, isTls)) return undefined;
    if (allowed.origins.some((pattern) => isOriginNamed(pattern, origin))) return undefined;
    const message = `Origin "${origin}" is not allowed: add it to gateway.origins (TAPEDECK_GATEWAY_ORIGINS)`;
    return refused(message, true);
  }
  if (headers["sec-fetch-site"] === "cross-site" && headers["sec-fetch-mode"] !== "navigate") {
    return refused("cross-site requests are not allowed");
  }
  return undefined;
}

/** A page of another origin has sent it, allowed or not; by a link or an image, too, which say no origin. */
export function isOfOtherPage(headers: IncomingHttpHeaders, isTls: boolean): boolean {
  const { origin, host, "sec-fetch-site": site } = headers;
  if (origin !== undefined) return !isOwnOrigin(origin, host, isTls);
  return site === "cross-site" || site === "same-site";
}

/**
 * Our own page: the same host and port as the request went to. With TLS of our own an http page of that name is another
 * one, which anybody on the way may have written; without it a proxy before us may be the one that speaks https.
 */
function isOwnOrigin(origin: string, host: string | undefined, isTls: boolean): boolean {
  try {
    const page = new URL(origin);
    if (isTls && page.protocol !== "https:") return false;
    return host !== undefined && page.host === new URL(`${page.protocol}//${host}`).host;
  } catch {
    return false; // "null": a sandboxed or local page
  }
}
