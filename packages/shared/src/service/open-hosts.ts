import { isLoopback } from "./loopback.ts";
import type { SettingsReader } from "./settings.ts";

/** A listener: its setting and its host. */
export type ListenerHost = readonly [key: string, host: string];

/**
 * A problem for each host beyond loopback, unless its requirements are configured (`lacks` undefined), or `insecure:
 * true` allows it to be open.
 */
export function refuseOpenHosts(read: SettingsReader, hosts: readonly ListenerHost[], lacks: string | undefined): void {
  const isInsecure = read.boolean("insecure", false, {
    description:
      "Listen beyond loopback without TLS and tokens (query and ingest: without a `services.key`). Commands may then send plaintext, but never a token, to other machines.",
  });
  if (isInsecure || lacks === undefined) return;
  for (const [key, host] of hosts) {
    if (isLoopback(host)) continue;
    read.addError(
      `${key}: "${host}" is beyond loopback, which needs ${lacks}: configure that, use 127.0.0.1, or say insecure: true to do without`,
    );
  }
}

/** What a port for Tapedeck's own services lacks: the key by which they authenticate each other. */
export function servicesOnly(servicesKey: string): string | undefined {
  return servicesKey === "" ? "services.key (it is for Tapedeck's own services only)" : undefined;
}
