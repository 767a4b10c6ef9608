import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { Seeded } from "@tapedeck/shared/testing/seeded";
import { oneOf } from "./values.ts";

const deepest = 4;

/** The bytes of a message: as it is described, with hostile values, or no message at all. */
export function randomMessage(random: Seeded, desc: DescMessage, hostile: () => string): Uint8Array {
  const bytes = encoded(random, desc, hostile, 0);
  switch (random.below(8)) {
    case 0:
      return randomBytes(random, random.below(40));
    case 1:
      return bytes.subarray(0, random.below(bytes.length + 1));
    case 2:
      return bytes.map((byte) => (random.below(12) === 0 ? random.below(256) : byte));
    default:
      return bytes;
  }
}

function randomBytes(random: Seeded, size: number): Uint8Array {
  return Uint8Array.from({ length: size }, () => random.below(256));
}

function encoded(random: Seeded, desc: DescMessage, hostile: () => string, depth: number): Uint8Array {
  const writer = new BinaryWriter();
  for (const field of random.shuffled(desc.fields)) {
    if (random.below(3) === 0) continue;
    const times = field.fieldKind === "list" || field.fieldKind === "map" ? random.below(3) : 1;
    for (let n = 0; n < times; n += 1) write(writer, random, field, hostile, depth);
  }
  return writer.finish();
}

function write(writer: BinaryWriter, random: Seeded, field: DescField, hostile: () => string, depth: number): void {
  if (field.fieldKind === "map") {
    const entry = new BinaryWriter();
    writeScalar(entry, random, 1, field.mapKey, hostile);
    if (field.scalar !== undefined) writeScalar(entry, random, 2, field.scalar, hostile);
    else if (field.message !== undefined) inside(entry, 2, messageOf(random, field.message, hostile, depth));
    inside(writer, field.number, entry.finish());
  } else if (field.message !== undefined) {
    inside(writer, field.number, messageOf(random, field.message, hostile, depth));
  } else if (field.enum !== undefined) {
    const known = field.enum.values.map(({ number }) => number);
    writer.tag(field.number, WireType.Varint).int32(oneOf(random, [...known, -1, 2 ** 31 - 1]));
  } else if (field.scalar !== undefined) writeScalar(writer, random, field.number, field.scalar, hostile);
}

function messageOf(random: Seeded, desc: DescMessage, hostile: () => string, depth: number): Uint8Array {
  return depth === deepest ? new Uint8Array() : encoded(random, desc, hostile, depth + 1);
}

function inside(writer: BinaryWriter, number: number, bytes: Uint8Array): void {
  writer.tag(number, WireType.LengthDelimited).bytes(bytes);
}

const whole = [0n, 1n, -1n, 2n ** 31n - 1n, 2n ** 31n, 2n ** 32n - 1n, 2n ** 53n, 2n ** 63n - 1n, -(2n ** 63n)];
const fractions = [0, -0, 0.5, 1, -1, 1_000, 1e308, Number.NaN, Number.POSITIVE_INFINITY, Number.MIN_VALUE];

function writeScalar(
  writer: BinaryWriter,
  random: Seeded,
  number: number,
  type: ScalarType,
  hostile: () => string,
): void {
  switch (type) {
    case ScalarType.STRING: {
      const text = random.below(10) === 0 ? randomBytes(random, 8) : Buffer.from(hostile());
      inside(writer, number, text);
      return;
    }
    case ScalarType.BYTES:
      inside(writer, number, randomBytes(random, random.below(30)));
      return;
    case ScalarType.DOUBLE:
      writer.tag(number, WireType.Bit64).double(oneOf(random, fractions));
      return;
    case ScalarType.FLOAT:
      writer.tag(number, WireType.Bit32).float(
        oneOf(
          random,
          fractions.filter((value) => value < 1e38),
        ),
      );
      return;
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      writer.tag(number, WireType.Bit32).fixed32(oneOf(random, [0, 1, 2 ** 31, 2 ** 32 - 1]));
      return;
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      writer.tag(number, WireType.Bit64).sfixed64(oneOf(random, whole));
      return;
    default:
      // All other kinds are varints.
      writer.tag(number, WireType.Varint).int64(oneOf(random, whole));
  }
}
