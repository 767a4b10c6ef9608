import type { UpstreamReading } from "../normalizer.ts";
import { looking } from "./observing.ts";

/** rkt tells no frames of its own: all that is known of a host is concluded from looks. */
export const reading: UpstreamReading = {
  channels: [],
  looking,
  mask: (_, bytes) => ({ bytes, redacted: 0 }),
  // GetInfo's answer: versions and flags.
  describedDiffers: (_, before, after) => Buffer.compare(before, after) !== 0,
  controlSteps: () => [],
  injects: () => undefined,
};
