import { isIP } from "node:net";
import { normalizeIP } from "@fastify/rate-limit";

/** The identity of a peer, whatever its port: an IPv4 address, or the /64 network of an IPv6 address. */
export function addressOf(peer: string): string {
  return normalizeIP(isIP(peer) !== 0 ? peer : peer.replace(/:\d+$/, ""));
}
