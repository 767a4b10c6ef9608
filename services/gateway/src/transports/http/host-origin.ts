import type { IncomingHttpHeaders } from "node:http";

export type AllowedNames = {
  /** Host names beside loopback, as in the Host header without a port. */
  readonly hosts: readonly string[];
  /** Origins in full, "https://dash.example.com". */
  readonly origins: readonly string[];
};

/**
 * Why a request is refused, or undefined. Skaffold's server has no such check, so any web page can POST to it; here a
 * page from elsewhere gets nothing, GET included, and a name that was rebound to this machine neither (DESIGN 9).
 * Requests without Origin (curl, gRPC, IDEs) pass.
 */
export function refusalOf(
  headers: IncomingHttpHeaders,
  allowed: AllowedNames,
  { isTls = false }: { readonly isTls?: boolean } = {},
): string | undefined {
  const host = hostName(headers.host);
  if (!isLoopback(host) && !allowed.hosts.includes(host)) {
    return `Host "${host}" is not allowed: add it to gateway.hosts (TAPEDECK_GATEWAY_HOSTS)`;
  }
  const { origin } = headers;
  if (origin !== undefined) {
    if (isOwnOrigin(origin, headers.host, isTls) || allowed.origins.includes(origin)) return undefined;
    return `Origin "${origin}" is not allowed: add it to gateway.origins (TAPEDECK_GATEWAY_ORIGINS)`;
  }
  if (headers["sec-fetch-site"] === "cross-site" && headers["sec-fetch-mode"] !== "navigate") {
    return "cross-site requests are not allowed";
  }
  return undefined;
}

function hostName(host: string | undefined): string {
  if (host === undefined) return "";
  const bracketed = /^(\[[^\]]*\])(:\d+)?$/.exec(host);
  return (bracketed?.[1] ?? host.replace(/:\d+$/, "")).toLowerCase();
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);
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
