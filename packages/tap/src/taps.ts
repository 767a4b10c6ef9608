import type { UpstreamName } from "@tapedeck/shared/upstreams";
import type { UpstreamTap } from "./tap.ts";

/**
 * The registry. A new name in `upstreamNames` stops this file from compiling until its tap is added here. Each is loaded
 * when it is asked for: a command has one upstream.
 */
export const taps = {
  skaffold: async () => (await import("./skaffold/tap.ts")).tap,
  rkt: async () => (await import("./rkt/tap.ts")).tap,
  vagrant: async () => (await import("./vagrant/tap.ts")).tap,
} satisfies Record<UpstreamName, () => Promise<UpstreamTap>>;
