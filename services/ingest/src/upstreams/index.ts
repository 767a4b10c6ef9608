import type { UpstreamName } from "@tapedeck/shared/upstreams";
import { rkt } from "./rkt/rkt.ts";
import { skaffold } from "./skaffold/skaffold.ts";
import type { Upstream } from "./upstream.ts";
import { vagrant } from "./vagrant/vagrant.ts";

/** The registry: a new name in `upstreamNames` stops this file from compiling until its adapter is here. */
export const upstreams = { skaffold, rkt, vagrant } satisfies Record<UpstreamName, Upstream>;
