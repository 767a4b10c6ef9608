/**
 * Whether a host, as a setting, a URL or a Host header names it, is this machine's loopback, which is not reachable
 * from elsewhere. An IPv6 address may be in brackets.
 */
export function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/i.test(host);
}
