import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

/** An encoded message that has these encoded messages in one field. They are not encoded again. */
export function holding(field: number, messages: readonly Uint8Array[]): Uint8Array {
  const writer = new BinaryWriter();
  for (const message of messages) writer.tag(field, WireType.LengthDelimited).bytes(message);
  return writer.finish();
}

/** The number or enum in a field of a valid message; 0 when it is not set. */
export function numberIn(message: Uint8Array, wanted: number): number {
  const reader = new BinaryReader(message);
  let found = 0;
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (field === wanted && type === WireType.Varint) found = reader.int32();
    else reader.skip(type, field);
  }
  return found;
}

/** Only the server sets fields of a Job from this number on. */
const firstServerField = 100;

/** In QueueJobRequest and ValidateJobRequest. */
const jobField = 1;

/**
 * A QueueJobRequest or ValidateJobRequest without the fields of the job that only a server may set. Everything else stays
 * as it is, unknown fields included. Throws if the bytes are not a message.
 */
export function withoutServerFields(request: Uint8Array): Uint8Array {
  return rewritten(request, (field, wireType) => {
    if (field !== jobField || wireType !== WireType.LengthDelimited) return undefined;
    return (job) => rewritten(job, (inner) => (inner < firstServerField ? undefined : "left out"));
  });
}

type Change = undefined | "left out" | ((message: Uint8Array) => Uint8Array);

/** The message with some fields changed, in its own order. A `Change` function gets the bytes of a nested message. */
function rewritten(bytes: Uint8Array, changeOf: (field: number, wireType: WireType) => Change): Uint8Array {
  const reader = new BinaryReader(bytes);
  const parts: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const [field, wireType] = reader.tag();
    const afterTag = reader.pos;
    reader.skip(wireType, field);
    const change = changeOf(field, wireType);
    if (change === undefined) parts.push(bytes.subarray(start, reader.pos));
    else if (change !== "left out") {
      const inner = new BinaryReader(bytes.subarray(afterTag, reader.pos)).bytes();
      parts.push(holding(field, [change(inner)]));
    }
  }
  return Buffer.concat(parts);
}
