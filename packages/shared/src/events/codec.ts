import { Event } from "@tapedeck/proto/tapedeck/v1/event";

export type { Event };

/** The bytes of a log message. */
export function encodeEvent(event: Event): Uint8Array {
  return Event.encode(event).finish();
}

/** Throws when the bytes are not an event. A later shape of the event is brought up to date here. */
export function decodeEvent(bytes: Uint8Array): Event {
  return Event.decode(bytes);
}
