import type { UpstreamName } from "@tapedeck/shared/upstreams";
import { upstreams } from "../upstreams/index.ts";
import { channelNames } from "../upstreams/upstream.ts";

/** All channels that a session of this upstream can have, but "tapedeck". */
export function channelsOf(upstream: UpstreamName): readonly string[] {
  return channelNames(upstreams[upstream].reading);
}
