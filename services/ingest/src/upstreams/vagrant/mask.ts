import { createFileRegistry, type DescMessage, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type DescriptorProto, FieldDescriptorProto_Type, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { mapStringFields } from "@tapedeck/shared/descriptors/mask-strings";
import { messageType, registry } from "@tapedeck/shared/descriptors/registry";
import { type Masked, maskBytes } from "../../secrets/mask-bytes.ts";
import { maskText } from "../../secrets/mask-text.ts";
import { isSecretName, isTrivial } from "../../secrets/secret-name.ts";
import { maskPacked } from "./mask-packed.ts";

/**
 * Masks the secrets in an encoded message of Vagrant's API, in place and with the same number of bytes: in all its texts
 * (printed bytes and Vagrantfiles are text too), the values of flags, maps and named values whose names say so, and in
 * messages of known types that are packed in it. `redacted` counts them. Bytes that are no such message are masked as if
 * all of them were text.
 */
export function mask(name: string, bytes: Uint8Array): Masked {
  const type = types.getMessage(name);
  return (type && maskMessage(type, bytes)) ?? maskBytes(bytes);
}

/** Real trees have less than ten levels. */
const deepest = 32;

/** `named`: where a value is whose name, outside of the message, says that it is a secret. Undefined: no such message. */
function maskMessage(type: DescMessage, bytes: Uint8Array, named: Named = [], depth = 0): Masked | undefined {
  const texts = maskTexts(type, bytes, named);
  if (texts === undefined || depth === deepest) return texts;
  const packed = maskPacked(type, texts.bytes, (inside, value, key) => {
    const masked = maskMessage(inside, value, isSecretName(key) ? ["value"] : [], depth + 1);
    return masked ?? { bytes: value, redacted: 0 };
  });
  return { bytes: packed.bytes, redacted: texts.redacted + packed.redacted };
}

function maskTexts(type: DescMessage, bytes: Uint8Array, alreadyNamed: Named): Masked | undefined {
  let named = alreadyNamed;
  let redacted = 0;
  const mapped = mapStringFields(type, bytes, (text, path) => {
    const isValue = named.includes(path) && !isTrivial(text);
    const masked = isValue ? { text: "*".repeat(Buffer.byteLength(text)), secrets: 1 } : maskText(text);
    // As masked, so that masking twice changes nothing.
    named = isValue ? [] : valuesNamed(masked.text, path);
    redacted += masked.secrets;
    return masked.text;
  });
  return mapped.malformed ? undefined : { bytes: mapped.bytes, redacted };
}

/** Paths at which the next text is the value of a secret. */
type Named = readonly string[];

/** A value comes right after its name: in flags, named values and maps, and among the words of a command. */
function valuesNamed(text: string, path: string): Named {
  const [, parent = "", field = ""] = /^(.*?)([^.]*)$/.exec(path) ?? [];
  if (field === "args") return /^--?[^=]+$/.test(text) && isSecretName(text.replace(/^-+/, "")) ? [path] : [];
  if ((field !== "key" && field !== "name") || !isSecretName(text)) return [];
  return [`${parent}value`, `${parent}string`, `${parent}value.string_value`];
}

/** Vagrant's messages as described, but with bytes that are text as text: the same on the wire. */
const types = withText(messageType("hashicorp.vagrant.Job"));

function withText({ file }: DescMessage) {
  const changed = fromBinary(FileDescriptorProtoSchema, toBinary(FileDescriptorProtoSchema, file.proto));
  markText(changed.messageType);
  return createFileRegistry(changed, (path) => registry.getFile(path));
}

/** What a command or a step printed, and a Vagrantfile. */
function markText(messages: readonly DescriptorProto[]): void {
  for (const { field, nestedType } of messages) {
    for (const one of field) {
      const isText = one.type === FieldDescriptorProto_Type.BYTES && /^(?:data|output|raw)$/.test(one.name);
      if (isText) one.type = FieldDescriptorProto_Type.STRING;
    }
    markText(nestedType);
  }
}
