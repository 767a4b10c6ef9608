import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import { type Moment, momentFrom } from "@tapedeck/shared/time/moment";

/** Field 1 of LogEntry and of v2's Event; read alone, because frames may be large and are sorted by it. */
export function momentOf(bytes: Uint8Array): Moment | undefined {
  const reader = new BinaryReader(bytes);
  let timestamp: Timestamp | undefined;
  try {
    while (reader.pos < reader.len) {
      const [field, wireType] = reader.tag();
      if (field === 1 && wireType === WireType.LengthDelimited) timestamp = Timestamp.decode(reader.bytes());
      else reader.skip(wireType);
    }
    return momentFrom(timestamp);
  } catch {
    return undefined;
  }
}
