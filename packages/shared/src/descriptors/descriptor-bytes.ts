import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

/** The compiled descriptors of the proto workspace, a FileDescriptorSet. Bundles have these bytes instead of this module. */
export function descriptorBytes(): Uint8Array {
  return readFileSync(createRequire(import.meta.url).resolve("@tapedeck/proto/descriptors.binpb"));
}
