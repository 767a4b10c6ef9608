import { create, createFileRegistry, type DescMessage, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import {
  FeatureSet_Utf8Validation,
  FeatureSetSchema,
  FileDescriptorSetSchema,
  FileOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import { descriptorBytes } from "./descriptor-bytes.ts";

/**
 * Every message, enum and service of the proto workspace, with its imports, read once from the generated
 * descriptors. For work that follows a description instead of generated code: JSON, filters, masking.
 */
export const registry: FileRegistry = loadRegistry();

/** The description of a message by its full name, such as `proto.v2.Event`. Throws for a name that is not ours. */
export function messageType(name: string): DescMessage {
  const desc = registry.getMessage(name);
  if (desc === undefined) throw new Error(`no message type named ${name}`);
  return desc;
}

function loadRegistry(): FileRegistry {
  const set = fromBinary(FileDescriptorSetSchema, descriptorBytes());
  // An upstream's message must stay readable even if its text is not UTF-8: bad bytes become U+FFFD, as in the
  // generated code, instead of an error. The feature in the descriptor is the only switch for it.
  const features = create(FeatureSetSchema, { utf8Validation: FeatureSet_Utf8Validation.NONE });
  for (const file of set.file) {
    file.options ??= create(FileOptionsSchema);
    file.options.features = features;
  }
  return createFileRegistry(set);
}
