import { BinaryWriter } from "@bufbuild/protobuf/wire";
import { Event } from "@tapedeck/proto/tapedeck/v1/event";

export type { Event };

/** The buffer of a larger event is not kept. */
const maxReusedBytes = 1024 * 1024;
let writer = new BinaryWriter();

/** The bytes of a log message. */
export function encodeEvent(event: Event): Uint8Array {
  // A new writer for each event would let its buffer grow from nothing, in steps.
  const reused = writer;
  writer = new BinaryWriter();
  const bytes = Event.encode(event, reused).finish();
  if (bytes.byteLength <= maxReusedBytes) writer = reused;
  return bytes;
}

/** Throws when the bytes are not an event. */
export function decodeEvent(bytes: Uint8Array): Event {
  return Event.decode(bytes);
}
