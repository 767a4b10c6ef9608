import type { UpstreamName } from "@tapedeck/shared/upstreams";
import type { Normalizer } from "./normalizer.ts";
import { normalizer as rkt } from "./rkt/normalizer.ts";
import { normalizer as skaffold } from "./skaffold/normalizer.ts";
import { normalizer as vagrant } from "./vagrant/normalizer.ts";

/** The registry: a new name in `upstreamNames` stops this file from compiling until its normalizer is here. */
export const normalizers = { skaffold, rkt, vagrant } satisfies Record<UpstreamName, Normalizer>;
