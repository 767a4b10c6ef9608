import type { UpstreamName } from "@tapedeck/shared/upstreams";
import { channelNames } from "../normalize/normalizer.ts";
import { normalizers } from "../normalize/normalizers.ts";

/** All channels that a session of this upstream can have, but "tapedeck". */
export function channelsOf(upstream: UpstreamName): readonly string[] {
  return channelNames(normalizers[upstream]);
}
