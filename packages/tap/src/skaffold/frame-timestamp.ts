import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import { validTimestamp } from "@tapedeck/shared/time/timestamp";

/** The time of a frame: field 1 of LogEntry and of v2's Event. Reads nothing else, because frames may be large. */
export function timestampOf(bytes: Uint8Array): Timestamp | undefined {
  const reader = new BinaryReader(bytes);
  let timestamp: Timestamp | undefined;
  try {
    while (reader.pos < reader.len) {
      const [field, wireType] = reader.tag();
      if (field === 1 && wireType === WireType.LengthDelimited) timestamp = Timestamp.decode(reader.bytes());
      else reader.skip(wireType);
    }
    return validTimestamp(timestamp);
  } catch {
    return undefined;
  }
}
