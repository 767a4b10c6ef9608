import { isIP } from "node:net";
import { isPublicAddress } from "./address-rules.ts";

/** Names that the operator allows: a host, or "host:port". */
export type AllowedHosts = readonly string[];

/** Whether the operator's settings allow a target whatever its address is. */
export function isAllowedHost(url: URL, allowed: AllowedHosts): boolean {
  const host = hostOf(url);
  return allowed.some((one) => {
    const name = one.toLowerCase();
    return (
      name === host || name === `${host}:${portOf(url)}` || name === `[${host}]` || name === `[${host}]:${portOf(url)}`
    );
  });
}

/** Why one of the settings' hosts can allow no target; undefined: it can. */
export function allowedHostError(text: string): string | undefined {
  const url = URL.parse(`https://${isIP(text) === 6 ? `[${text}]` : text}`);
  if (url !== null && isAllowedHost(url, [text]) && !text.includes("*")) return undefined;
  const meant = text.includes("://") ? URL.parse(text) : url;
  const remedy = meant === null || text.includes("*") ? "" : `: write ${meant.host.replace(/\.$/, "")}`;
  return `"${text}" is not a host, such as receiver or receiver:8080${remedy}`;
}

/**
 * Why a target is refused, as far as its URL shows; undefined: it is not. A name is looked up, and its addresses are checked,
 * with each connection.
 */
export function targetError(text: string, allowed: AllowedHosts): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) return "is not a URL";
  if (url.protocol !== "https:" && url.protocol !== "http:") return "is neither https nor http";
  if (url.username !== "" || url.password !== "") return "has a user or a password: use a header";
  if (url.hash !== "") return "has a fragment, which is never sent";
  if (isAllowedHost(url, allowed)) return undefined;
  const host = hostOf(url);
  if (url.protocol === "http:") return `is without TLS, which only a host of gateway.sinkHosts may be: ${remedy(url)}`;
  const isLocal = host === "localhost" || host.endsWith(".localhost");
  if (isLocal || (isIP(host) !== 0 && !isPublicAddress(host))) return refusedAddress(url);
  return undefined;
}

export function refusedAddress(url: URL): string {
  return `${hostOf(url)} is not a public address, and only a host of gateway.sinkHosts may be on this machine or in a private network: ${remedy(url)}`;
}

function remedy(url: URL): string {
  return `add gateway: { sinkHosts: ["${url.hostname.replace(/\.$/, "")}:${portOf(url)}"] } to tapedeck.yaml, and restart`;
}

/** The part of a target that may be shown: a path can be a secret. */
export function shownTarget(text: string): string {
  const url = new URL(text);
  return url.pathname === "/" && url.search === "" ? url.origin : `${url.origin}/…`;
}

/** Without the brackets of an address of IPv6. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
}

export function portOf({ port, protocol }: URL): string {
  if (port !== "") return port;
  return protocol === "https:" ? "443" : "80";
}
