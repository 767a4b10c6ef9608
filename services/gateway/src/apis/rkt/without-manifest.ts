import { BinaryReader } from "@bufbuild/protobuf/wire";

/** Field 6 of v1alpha.Pod and of v1alpha.Image. */
const manifest = 6;

/** An encoded pod or image as rkt lists it without `detail`; all else, what we don't know included, stays as it is. */
export function withoutManifest(bytes: Uint8Array): Uint8Array {
  const reader = new BinaryReader(bytes);
  const kept: Uint8Array[] = [];
  let from = 0;
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const [field, wireType] = reader.tag();
    reader.skip(wireType, field);
    if (field !== manifest) continue;
    kept.push(bytes.subarray(from, start));
    from = reader.pos;
  }
  return from === 0 ? bytes : Buffer.concat([...kept, bytes.subarray(from)]);
}
