import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import { Event as V2Message } from "@tapedeck/proto/skaffold/v2/skaffold";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { decoded } from "../states/message-of.ts";
import type { V1Event, V2Event } from "./api-event.ts";
import { normalizedV1, normalizedV2 } from "./oversize.ts";

/** The upstream's message of an event, once per frame. Undefined if it can't touch state or can't be decoded. */
export function v1EventOf(event: Event): V1Event | undefined {
  return apiEventOf(event, (bytes) => LogEntry.decode(bytes).event?.event_type, normalizedV1);
}

export function v2EventOf(event: Event): V2Event | undefined {
  return apiEventOf(event, (bytes) => V2Message.decode(bytes).event_type, normalizedV2);
}

function apiEventOf<M>(
  event: Event,
  decode: (bytes: Uint8Array) => M | undefined,
  normalized: (event: Event) => M | undefined,
): M | undefined {
  // Text makes up nearly all of a session, so it is not even decoded.
  if (event.part !== 0 || event.kind === "log.written" || event.kind === "upstream.unreadable") return undefined;
  const { original } = event;
  const isOversize = !original || BigInt(original.bytes.length) < original.size;
  if (isOversize) return normalized(event);
  return decoded({ decode }, original.bytes);
}
