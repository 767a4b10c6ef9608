import { isIP } from "node:net";
import { normalizeIP } from "@fastify/rate-limit";

/** Who a peer is, whatever its port: an IPv4 address, or the /64 network of an IPv6 one, which is one customer's. */
export function addressOf(peer: string): string {
  return normalizeIP(isIP(peer) !== 0 ? peer : peer.replace(/:\d+$/, ""));
}
