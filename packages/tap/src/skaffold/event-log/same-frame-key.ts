import { toGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import type { Channel } from "@tapedeck/shared/skaffold/methods";

const types = {
  v1: messageType("proto.LogEntry"),
  v2: messageType("proto.v2.Event"),
  logs: messageType("proto.v2.Event"),
} as const;

/**
 * Equal for a recorded frame and the same message imported from JSON, also where their bytes differ: the order of maps,
 * text that was not UTF-8. Both masked, or neither. Bytes that are no message are their own key.
 */
export function sameFrameKey(channel: Channel, bytes: Uint8Array): string {
  try {
    return JSON.stringify(toGatewayJson(types[channel], bytes));
  } catch {
    return Buffer.from(bytes).toString("base64");
  }
}
