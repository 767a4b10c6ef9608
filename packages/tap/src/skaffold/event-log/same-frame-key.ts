import { toGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import type { Channel } from "../methods.ts";
import { frameTypes } from "./frame-types.ts";

/**
 * Equal for a recorded frame and the same message imported from JSON, also where their bytes differ: the order of maps,
 * text that was not UTF-8. Both masked, or neither. Bytes that are no message are their own key.
 */
export function sameFrameKey(channel: Channel, bytes: Uint8Array): string {
  try {
    return JSON.stringify(toGatewayJson(frameTypes[channel], bytes));
  } catch {
    return Buffer.from(bytes).toString("base64");
  }
}
