import type { UpstreamName } from "@tapedeck/shared/upstreams";
import { channelNames } from "../normalize/normalizer.ts";
import { normalizers } from "../normalize/normalizers.ts";

// For `tapedeck export` and `tapedeck import`: what a session can have in it.

/** All channels that a session of this upstream can have, but "tapedeck". */
export function channelsOf(upstream: UpstreamName): readonly string[] {
  return channelNames(normalizers[upstream]);
}

/** The bytes of a frame as they may have been recorded: unchanged under `redact: off`, and masked under `redact: on`. */
export function recordedForms(upstream: UpstreamName, channel: string, bytes: Uint8Array): readonly Uint8Array[] {
  return [bytes, normalizers[upstream].mask(channel, bytes).bytes];
}
