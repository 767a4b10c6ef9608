import { createFileRegistry, type DescMessage, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type DescriptorProto, FieldDescriptorProto_Type, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { messageType, registry } from "@tapedeck/shared/descriptors/registry";
import { maskPiece } from "../../secrets/continued-text.ts";
import { type MaskedBytes, maskBytes } from "../../secrets/mask-bytes.ts";
import { type MaskedText, maskText } from "../../secrets/mask-text.ts";
import { isSecretName, isTrivial } from "../../secrets/secret-name.ts";
import { mapStringFields } from "../mask-strings.ts";
import { maskPacked, packedType } from "./mask-packed.ts";
import { deepest, maskUntyped } from "./mask-untyped.ts";

/**
 * Masks the secrets in an encoded message of Vagrant's API, in place and with the same number of bytes: in all its
 * texts (printed bytes and Vagrantfiles are text too), the values of flags, maps and named values with secret names,
 * and in messages that are packed in it, of known and unknown types. `redacted` counts them. Bytes that are no such
 * message are masked as if all of them were text.
 */
export function mask(name: string, bytes: Uint8Array): MaskedBytes {
  const type = types.getMessage(name);
  return (type && maskMessage(type, bytes)) ?? maskBytes(bytes);
}

/** `named`: paths of values whose names, outside the message, mark them as secrets. Undefined: no such message. */
function maskMessage(type: DescMessage, bytes: Uint8Array, named: NamePath = [], depth = 0): MaskedBytes | undefined {
  const texts = maskTexts(type, bytes, named);
  if (texts === undefined || depth === deepest) return texts;
  const packed = maskPacked(type, texts.bytes, (typeUrl, value, key) => maskAny(typeUrl, value, key, depth + 1));
  return { bytes: packed.bytes, redacted: texts.redacted + packed.redacted };
}

/** Masks a message that is packed in another. `name`: its key there. */
function maskAny(typeUrl: string, bytes: Uint8Array, name: string, depth: number): MaskedBytes {
  const type = packedType(typeUrl);
  const typed = type && maskMessage(type, bytes, isSecretName(name) ? ["value"] : [], depth);
  return typed ?? maskUntyped(bytes, { name, depth, maskAny });
}

function maskTexts(type: DescMessage, bytes: Uint8Array, alreadyNamed: NamePath): MaskedBytes | undefined {
  let named = alreadyNamed;
  let redacted = 0;
  const mapped = mapStringFields(type, bytes, (text, path) => {
    const isValue = named.includes(path) && !isTrivial(text);
    const masked = isValue ? { text: "*".repeat(Buffer.byteLength(text)), secrets: 1 } : maskPrinted(text, path);
    // The masked text, so that masking twice changes nothing.
    named = isValue ? [] : valuesNamed(masked.text, path);
    redacted += masked.secrets;
    return masked.text;
  });
  return mapped.malformed ? undefined : { bytes: mapped.bytes, redacted };
}

/** Raw output comes in pieces of at most 1,024 bytes. */
function maskPrinted(text: string, path: string): MaskedText {
  return /(?:^|\.)raw\.data$/.test(path) ? maskPiece(text) : maskText(text);
}

/** Paths at which the next text is the value of a secret. */
type NamePath = readonly string[];

/** A value comes right after its name: in flags, named values and maps, and among the words of a command. */
function valuesNamed(text: string, path: string): NamePath {
  const [, parent = "", field = ""] = /^(.*?)([^.]*)$/.exec(path) ?? [];
  if (field === "args") return /^--?[^=]+$/.test(text) && isSecretName(text.replace(/^-+/, "")) ? [path] : [];
  if ((field !== "key" && field !== "name") || !isSecretName(text)) return [];
  return [`${parent}value`, `${parent}string`, `${parent}value.string_value`];
}

/** Vagrant's messages as described, but with bytes that are text as text: the same on the wire. */
export const types = withText(messageType("hashicorp.vagrant.Job"));

function withText({ file }: DescMessage) {
  const changed = fromBinary(FileDescriptorProtoSchema, toBinary(FileDescriptorProtoSchema, file.proto));
  markText(changed.messageType);
  return createFileRegistry(changed, (path) => registry.getFile(path));
}

/** The output of a command or a step, and a Vagrantfile. */
function markText(messages: readonly DescriptorProto[]): void {
  for (const { field, nestedType } of messages) {
    for (const one of field) {
      const isText = one.type === FieldDescriptorProto_Type.BYTES && /^(?:data|output|raw)$/.test(one.name);
      if (isText) one.type = FieldDescriptorProto_Type.STRING;
    }
    markText(nestedType);
  }
}
