import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

/**
 * The parts of a message that Go's protobuf library decodes, for code that has to know what a Go program makes of it. Go
 * treats a field with a wrong wire type as unknown and skips its bytes; the libraries here would decode it with its
 * declared type, which consumes other bytes. Unknown fields are dropped. Entries of maps are empty, because an object
 * can't have every key that a map can.
 * @throws Error for bytes that are not a message
 */
export function asGoDecodes(desc: DescMessage, bytes: Uint8Array): Uint8Array {
  const fields = new Map(desc.fields.map((field) => [field.number, field]));
  const reader = new BinaryReader(bytes);
  const writer = new BinaryWriter();
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const [number, wireType] = reader.tag();
    const afterTag = reader.pos;
    reader.skip(wireType, number);
    const field = fields.get(number);
    if (field === undefined || !wireTypesOf(field).includes(wireType)) continue;
    if (field.fieldKind === "map") writer.tag(number, wireType).bytes(new Uint8Array());
    else if (field.message === undefined) writer.raw(bytes.subarray(start, reader.pos));
    else {
      const inner = new BinaryReader(bytes.subarray(afterTag, reader.pos)).bytes();
      writer.tag(number, wireType).bytes(asGoDecodes(field.message, inner));
    }
  }
  return writer.finish();
}

function wireTypesOf(field: DescField): readonly WireType[] {
  if (field.fieldKind === "map" || field.message !== undefined) return [WireType.LengthDelimited];
  const own = wireTypeOf(field.scalar);
  // Numbers may be packed or not, whatever the field declares.
  return field.fieldKind === "list" ? [own, WireType.LengthDelimited] : [own];
}

/** `scalar` undefined: an enum. */
function wireTypeOf(scalar: ScalarType | undefined): WireType {
  switch (scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return WireType.LengthDelimited;
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return WireType.Bit64;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return WireType.Bit32;
    default:
      return WireType.Varint;
  }
}
