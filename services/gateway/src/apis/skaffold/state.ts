import { toGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import type { UpstreamState } from "../upstream-state.ts";
import { stateMessageTypes } from "./methods.ts";

export const skaffoldState: UpstreamState = {
  isLarge: false,
  collections: [
    ["skaffold.v1", stateMessageTypes.v1],
    ["skaffold.v2", stateMessageTypes.v2],
  ],
  toJson: ([[v1 = new Uint8Array()] = [], [v2 = new Uint8Array()] = []]) => ({
    v1: toGatewayJson(messageType(stateMessageTypes.v1), v1),
    v2: toGatewayJson(messageType(stateMessageTypes.v2), v2),
  }),
};
