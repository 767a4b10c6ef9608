import { messageType } from "@tapedeck/shared/descriptors/registry";

/** The message type of each channel's frames. */
export const frameTypes = {
  v1: messageType("proto.LogEntry"),
  v2: messageType("proto.v2.Event"),
  logs: messageType("proto.v2.Event"),
} as const;
