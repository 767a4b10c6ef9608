import type { UpstreamName } from "@tapedeck/shared/upstreams";
import type { UpstreamReading } from "./normalizer.ts";
import { reading as rkt } from "./rkt/normalizer.ts";
import { reading as skaffold } from "./skaffold/normalizer.ts";
import { reading as vagrant } from "./vagrant/normalizer.ts";

/** The registry: a new name in `upstreamNames` stops this file from compiling until its normalizer is here. */
export const normalizers = { skaffold, rkt, vagrant } satisfies Record<UpstreamName, UpstreamReading>;
