import type { Normalizer } from "../normalizer.ts";
import { observing } from "./observing.ts";

/** rkt tells no frames of its own: all that is known of a host is concluded from looks. */
export const normalizer: Normalizer = {
  channels: [],
  observing: observing,
  mask: (_, bytes) => ({ bytes, redacted: 0 }),
  // GetInfo's answer: versions and flags.
  stateDiffers: (_, before, after) => Buffer.compare(before, after) !== 0,
  controlSteps: () => [],
  injects: () => undefined,
};
