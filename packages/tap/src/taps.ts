import type { UpstreamName } from "@tapedeck/shared/upstreams";
import { tap as rkt } from "./rkt/tap.ts";
import { tap as skaffold } from "./skaffold/tap.ts";
import type { UpstreamTap } from "./tap.ts";
import { tap as vagrant } from "./vagrant/tap.ts";

/** The registry. A new name in `upstreamNames` stops this file from compiling until its tap is added here. */
export const taps = { skaffold, rkt, vagrant } satisfies Record<UpstreamName, UpstreamTap>;
