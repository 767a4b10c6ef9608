import { toGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import type { SkaffoldChannel } from "@tapedeck/shared/skaffold/methods";
import { frameTypes } from "./frame-types.ts";

/**
 * A key that is equal for a recorded frame and the same message imported from JSON, even where their bytes differ (the order
 * of maps, text that was not UTF-8). Both must be masked, or neither. Bytes that are not a message are their own key.
 */
export function sameFrameKey(channel: SkaffoldChannel, bytes: Uint8Array): string {
  try {
    return JSON.stringify(toGatewayJson(frameTypes[channel], bytes));
  } catch {
    return Buffer.from(bytes).toString("base64");
  }
}
