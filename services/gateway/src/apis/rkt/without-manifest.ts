import { BinaryReader } from "@bufbuild/protobuf/wire";

/** The field in v1alpha.Pod and v1alpha.Image. */
const manifest = 6;

/** An encoded pod or image as rkt lists it without `detail`. Everything else stays as it is, unknown fields included. */
export function withoutManifest(bytes: Uint8Array): Uint8Array {
  const reader = new BinaryReader(bytes);
  const fields: Uint8Array[] = [];
  let from = 0;
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const [field, wireType] = reader.tag();
    reader.skip(wireType, field);
    if (field !== manifest) continue;
    fields.push(bytes.subarray(from, start));
    from = reader.pos;
  }
  return from === 0 ? bytes : Buffer.concat([...fields, bytes.subarray(from)]);
}
