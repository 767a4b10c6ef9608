import type { UpstreamName } from "@tapedeck/shared/upstreams";
import { skaffold } from "../upstreams/skaffold/skaffold.ts";
import type { Upstream } from "./normalizer.ts";
import { rkt } from "./rkt/normalizer.ts";
import { vagrant } from "./vagrant/normalizer.ts";

/** The registry: a new name in `upstreamNames` stops this file from compiling until its adapter is here. */
export const upstreams = { skaffold, rkt, vagrant } satisfies Record<UpstreamName, Upstream>;
