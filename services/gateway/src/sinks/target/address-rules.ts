import { BlockList, isIP } from "node:net";

// Which addresses a sink may deliver to: public ones. A receiver on this machine or in the operator's own network needs
// the operator's word (`gateway.sinkHosts`), because an admin of a workspace need not be one of the network.

/** IANA's special-purpose addresses, and two at which clouds answer about the machine that asks. */
const refusedV4: readonly (readonly [net: string, prefix: number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["100.100.100.200", 32],
  ["127.0.0.0", 8],
  ["168.63.129.16", 32],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.31.196.0", 24],
  ["192.52.193.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["192.175.48.0", 24],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
];

/** Global unicast alone is public in IPv6, without what is reserved there or leads to an address of IPv4. */
const publicV6 = ["2000::", 3] as const;
const refusedV6: readonly (readonly [net: string, prefix: number])[] = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["2620:4f:8000::", 48],
  ["3fff::", 20],
];

/** NAT64 (RFC 6052): the last 32 bits are the address of IPv4 that is meant. */
const nat64 = ["64:ff9b::", 96] as const;

const v4 = listOf("ipv4", refusedV4);
const v6 = listOf("ipv6", refusedV6);
const global = listOf("ipv6", [publicV6]);
const translated = listOf("ipv6", [nat64]);

/** Whether an address is public, however it is written; false for a text that is no address. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 0) return false;
  if (family === 4) return !v4.check(address, "ipv4");
  const [plain = ""] = address.split("%");
  if (plain !== address) return false; // a zone: it is link-local
  if (translated.check(plain, "ipv6")) return isPublicAddress(lastOfV4(plain));
  return global.check(plain, "ipv6") && !v6.check(plain, "ipv6");
}

function listOf(family: "ipv4" | "ipv6", nets: readonly (readonly [string, number])[]): BlockList {
  const list = new BlockList();
  for (const [net, prefix] of nets) list.addSubnet(net, prefix, family);
  return list;
}

/** The last 32 bits of an address of IPv6, as one of IPv4. */
function lastOfV4(address: string): string {
  const dotted = /(\d+\.\d+\.\d+\.\d+)$/.exec(address)?.[1];
  if (dotted !== undefined) return dotted;
  // The URL parser writes every form the same way.
  const [head = "", tail = ""] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const [low = "0", high = "0"] = (tail === "" ? head : `0:0:${tail}`).split(":").toReversed();
  const bits = ((Number.parseInt(high || "0", 16) << 16) | Number.parseInt(low || "0", 16)) >>> 0;
  return [24, 16, 8, 0].map((shift) => (bits >>> shift) & 255).join(".");
}
