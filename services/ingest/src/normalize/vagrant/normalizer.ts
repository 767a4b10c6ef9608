import type { UpstreamReading } from "../normalizer.ts";
import { looking } from "./observing.ts";

/** Vagrant's server streams only the jobs that one asks for by their ids: the rest is concluded from looks. */
export const reading: UpstreamReading = {
  channels: [],
  looking,
  mask: (_, bytes) => ({ bytes, redacted: 0 }),
  // GetVersionInfo's answer.
  describedDiffers: (_, before, after) => Buffer.compare(before, after) !== 0,
  controlSteps: () => [],
  injects: () => undefined,
};
