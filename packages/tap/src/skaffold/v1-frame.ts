import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { validTimestamp } from "@tapedeck/shared/time/timestamp";

/** LogEntry.event, and those of its types that are distinguished here. */
const eventField = 2;
/** The event types that are distinguished here, by their fields in v1's Event. */
export const eventTypes = { metaEvent: 1, devLoopEvent: 9 } as const;

/** Whether the event of a v1 frame has one of these types. Reads two tags of most frames, where decoding would read all. */
export function isOfType(bytes: Uint8Array, ...types: readonly number[]): boolean {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (field !== eventField || type !== WireType.LengthDelimited) {
      reader.skip(type, field);
      continue;
    }
    for (const end = reader.uint32() + reader.pos; reader.pos < end; ) {
      const [eventType, wireType] = reader.tag();
      if (types.includes(eventType)) return true;
      reader.skip(wireType, eventType);
    }
  }
  return false;
}

/** The status of a devLoopEvent that begins a loop. */
export const inProgress = "In Progress";

/** When the dev loop began that a v1 frame begins, by Skaffold's clock. Undefined: it begins none, or has no time. */
export function loopStartOf(bytes: Uint8Array): Timestamp | undefined {
  try {
    if (!isOfType(bytes, eventTypes.devLoopEvent)) return undefined;
    const { event, timestamp } = LogEntry.decode(bytes);
    const type = event?.event_type;
    return type?.$case === "devLoopEvent" && type.value.status === inProgress ? validTimestamp(timestamp) : undefined;
  } catch {
    return undefined;
  }
}
