import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { asBuffer } from "../as-buffer.ts";

/**
 * All values of a field that holds messages, text or bytes. They are views of the message's own bytes, encoded as their
 * sender encoded them. Throws for bytes that are not a message.
 */
export function fieldsOf(message: Uint8Array, fieldNumber: number): Buffer[] {
  const reader = new BinaryReader(message);
  const found: Buffer[] = [];
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    if (number !== fieldNumber || type !== WireType.LengthDelimited) {
      reader.skip(type, number);
      continue;
    }
    const bytes = reader.bytes();
    found.push(asBuffer(bytes));
  }
  return found;
}

/** The number or enum in a field of a valid message; 0 when it is not set. */
export function numberIn(message: Uint8Array, fieldNumber: number): number {
  const reader = new BinaryReader(message);
  let found = 0;
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (field === fieldNumber && type === WireType.Varint) found = reader.int32();
    else reader.skip(type, field);
  }
  return found;
}

/** An encoded message that has these encoded messages in one field. They are not encoded again. */
export function holding(field: number, messages: readonly Uint8Array[]): Uint8Array {
  const writer = new BinaryWriter();
  for (const message of messages) writer.tag(field, WireType.LengthDelimited).bytes(message);
  return writer.finish();
}
