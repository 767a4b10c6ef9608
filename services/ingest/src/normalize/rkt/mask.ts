import { createFileRegistry, type DescMessage, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FieldDescriptorProto_Type, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import { isCut, messageOf } from "@tapedeck/tap/rkt/text-lines";
import { maskPiece } from "../../secrets/continued-text.ts";
import { type MaskedBytes, maskBytes } from "../../secrets/mask-bytes.ts";
import { maskText } from "../../secrets/mask-text.ts";
import { isSecretName, isTrivial } from "../../secrets/secret-name.ts";
import { mapStringFields } from "../mask-strings.ts";

const linesType = "v1alpha.GetLogsResponse";

/**
 * Masks the secrets in an encoded message of rkt's API, in place and with the same number of bytes: in all its texts,
 * in the values of annotations with secret keys, and in the JSON of manifests (the environment of an app). `redacted`
 * counts them. Bytes that are no such message are masked as if all of them were text.
 */
export function mask(name: string, bytes: Uint8Array): MaskedBytes {
  const type = types.getMessage(name);
  if (type === undefined) return maskBytes(bytes);
  let redacted = 0;
  let key = "";
  const mapped = mapStringFields(type, bytes, (text, path) => {
    if (path.endsWith("Key")) key = text;
    const masked = name === linesType && isCut(messageOf(text)) ? maskPiece(text) : maskText(text);
    if (path.endsWith("value") && isSecretName(key) && !isTrivial(text)) {
      redacted += 1;
      return "*".repeat(Buffer.byteLength(text));
    }
    redacted += masked.secrets;
    return masked.text;
  });
  return mapped.malformed ? maskBytes(bytes) : { bytes: mapped.bytes, redacted };
}

/** rkt's messages as described, but with manifests (JSON in fields of type bytes) as text: the same on the wire. */
const types = textManifests(messageType("v1alpha.Pod"));

function textManifests({ file }: DescMessage) {
  const changed = fromBinary(FileDescriptorProtoSchema, toBinary(FileDescriptorProtoSchema, file.proto));
  for (const { field } of changed.messageType) {
    for (const manifest of field.filter(({ name }) => name === "manifest")) {
      manifest.type = FieldDescriptorProto_Type.STRING;
    }
  }
  return createFileRegistry(changed, () => undefined);
}
