import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { holding } from "@tapedeck/shared/descriptors/message-fields";

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
