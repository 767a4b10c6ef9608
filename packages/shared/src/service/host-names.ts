import { isLoopback } from "./loopback.ts";

/**
 * Whether a request's Host header names loopback or one of these: a page whose name was rebound to this machine's address
 * shows its own. `hosts`: as in the header without a port.
 */
export function isAllowedHost(header: string | undefined, hosts: readonly string[]): boolean {
  const name = hostName(header);
  return isLoopback(name) || hosts.includes(name);
}

/** In lower case and without the port; an IPv6 address keeps its brackets. */
export function hostName(header: string | undefined): string {
  if (header === undefined) return "";
  const bracketed = /^(\[[^\]]*\])(:\d+)?$/.exec(header);
  return (bracketed?.[1] ?? header.replace(/:\d+$/, "")).toLowerCase();
}
