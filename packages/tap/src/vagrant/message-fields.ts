import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

/**
 * All values of a field that holds messages, text or bytes. They are views of the message's own bytes, encoded as Vagrant
 * encoded them. Throws for bytes that are not a message.
 */
export function fieldsOf(message: Uint8Array, wanted: number): Buffer[] {
  const reader = new BinaryReader(message);
  const found: Buffer[] = [];
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    if (number !== wanted || type !== WireType.LengthDelimited) {
      reader.skip(type, number);
      continue;
    }
    const bytes = reader.bytes();
    found.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  }
  return found;
}
