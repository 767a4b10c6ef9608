import { isLoopback } from "@tapedeck/shared/service/loopback";
import { probePort } from "@tapedeck/tap/port-probe";

export function nothingListensAt(address: string) {
  return { why: `nothing listens at ${address}`, mends: true };
}

/**
 * The failure of a target on this machine where nothing listens, found without gRPC, which takes longer to load than a
 * short command to run. Undefined where something listens, and for another machine, which may be behind a proxy.
 */
export async function closedPort(address: string) {
  const colon = address.lastIndexOf(":");
  const host = address.slice(0, colon);
  if (!isLoopback(host)) return undefined;
  const port = Number(address.slice(colon + 1));
  const answer = await probePort({ host: host.replace(/[[\]]/g, ""), port });
  return answer === "refused" ? nothingListensAt(address) : undefined;
}
