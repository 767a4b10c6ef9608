import { tap } from "@tapedeck/tap/vagrant/tap";
import type { Upstream, UpstreamReading } from "../normalizer.ts";
import { looking } from "./observing.ts";

/** Vagrant's server streams only the jobs that one asks for by their ids: the rest is concluded from looks. */
const reading: UpstreamReading = {
  channels: [],
  looking,
  mask: (_, bytes) => ({ bytes, redacted: 0 }),
  // GetVersionInfo's answer.
  describedDiffers: (_, before, after) => Buffer.compare(before, after) !== 0,
  controlSteps: () => [],
  injects: () => undefined,
};

export const vagrant: Upstream = { name: "vagrant", tap, reading, livesInCommand: true };
