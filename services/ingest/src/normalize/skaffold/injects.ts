import type { JsonObject } from "@bufbuild/protobuf";
import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import { toGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import { type SkaffoldChannel, services } from "@tapedeck/shared/skaffold/methods";
import { mask } from "./mask.ts";

type Injection = { readonly channel: SkaffoldChannel; readonly matches: (frame: Uint8Array) => boolean };

const types = {
  entry: messageType("proto.LogEntry"),
  v1: messageType("proto.Event"),
  v2: messageType("proto.v2.Event"),
};

/**
 * Handle puts its event into the stream of its own API. Go encodes it anew there and stamps it, so meaning is compared
 * and not bytes. A frame may be masked already, the request never is.
 */
export function injects(method: string, request: Uint8Array): Injection | undefined {
  if (method === services.v1.handle.path) return injection("v1", v1Keys(request), eventOfEntry);
  if (method === services.v2.handle.path) return injection(v2Channel(request), v2Keys(request), eventOfV2);
  return undefined;
}

type Key = string | undefined;

function injection(channel: SkaffoldChannel, keys: readonly Key[], keyOf: (frame: Uint8Array) => Key): Injection {
  const names = new Set(keys.filter((key) => key !== undefined));
  return {
    channel,
    matches(frame) {
      const key = keyOf(frame);
      return key !== undefined && names.has(key);
    },
  };
}

function v1Keys(request: Uint8Array): readonly Key[] {
  // A LogEntry with the event, so that it is masked as one.
  const entry = LogEntry.encode({ event: undefined, entry: "" }).raw(Uint8Array.of(0x12)).bytes(request).finish();
  return [eventOfEntry(entry), eventOfEntry(mask("v1", entry).bytes)];
}

/** A container's output goes to the channel of ApplicationLogs. */
function v2Channel(request: Uint8Array): SkaffoldChannel {
  return read(types.v2, request)?.applicationLogEvent === undefined ? "v2" : "logs";
}

function v2Keys(request: Uint8Array): readonly Key[] {
  return [eventOfV2(request), eventOfV2(mask("v2", request).bytes)];
}

function eventOfEntry(frame: Uint8Array): Key {
  const event = read(types.entry, frame)?.event;
  return event === undefined || event === null ? undefined : JSON.stringify(event);
}

function eventOfV2(frame: Uint8Array): Key {
  const json = read(types.v2, frame);
  return json && JSON.stringify({ ...json, timestamp: null });
}

function read(type: (typeof types)["v1"], bytes: Uint8Array): JsonObject | undefined {
  try {
    return toGatewayJson(type, bytes);
  } catch {
    return undefined;
  }
}
