import type { UpstreamTap } from "../upstream.ts";

export const tap: UpstreamTap = {
  run: () => {
    throw new Error("not there yet");
  },
};
