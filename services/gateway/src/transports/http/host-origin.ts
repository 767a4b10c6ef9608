import type { IncomingHttpHeaders } from "node:http";
import { hostName, isAllowedHost } from "@tapedeck/shared/service/host-names";
import { isOriginNamed } from "../origins.ts";

export type AllowedNames = {
  /** Host names beside loopback, as in the Host header without a port. */
  readonly hosts: readonly string[];
  /** Origins such as "https://dash.example.com", or patterns; see origins.ts. */
  readonly origins: readonly string[];
};

export type NameRefusal = {
  readonly message: string;
  /** The origin is the only reason. The page may know that, and reads nothing else. */
  readonly ofOrigin: boolean;
};

/**
 * Why a request is refused by its Host or Origin; undefined when it is not. Skaffold's server has no such check, so any
 * web page can POST to it. Here a page of another origin gets nothing, GET included, and neither does a page whose name was
 * rebound to this machine. Requests without Origin (curl, gRPC, IDEs) pass.
 */
export function refusalOf(
  headers: IncomingHttpHeaders,
  allowed: AllowedNames,
  { isTls = false }: { readonly isTls?: boolean } = {},
): NameRefusal | undefined {
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

/** Whether a page of another origin sent the request, allowed or not, also by a link or image, which send no Origin. */
export function isOfOtherPage(headers: IncomingHttpHeaders, isTls: boolean): boolean {
  const { origin, host, "sec-fetch-site": site } = headers;
  if (origin !== undefined) return !isOwnOrigin(origin, host, isTls);
  return site === "cross-site" || site === "same-site";
}

/**
 * Whether the origin is our own page: the host and port that the request went to. With TLS of our own, an http page of that
 * name is a different page, which anyone on the network path may have written. Without it, a proxy before us may add https.
 */
export function isOwnOrigin(origin: string, host: string | undefined, isTls: boolean): boolean {
  try {
    const page = new URL(origin);
    if (isTls && page.protocol !== "https:") return false;
    return host !== undefined && page.host === new URL(`${page.protocol}//${host}`).host;
  } catch {
    return false; // "null": a sandboxed or local page
  }
}
