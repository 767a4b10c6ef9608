import { createFileRegistry, type DescMessage, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type DescriptorProto, FieldDescriptorProto_Type, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { mapStringFields } from "@tapedeck/shared/descriptors/mask-strings";
import { messageType, registry } from "@tapedeck/shared/descriptors/registry";
import { maskText, secretsIn } from "../../secrets/mask-text.ts";
import { isSecretName } from "../../secrets/secret-name.ts";

/**
 * Masks the secrets in an encoded message of Vagrant's API, in place and with the same number of bytes: in all its texts
 * (printed bytes and Vagrantfiles are text too), and the values of flags, maps and named values whose names say so.
 * `redacted` counts them. Bytes that are no such message are masked as if all of them were text.
 */
export function mask(name: string, bytes: Uint8Array): { readonly bytes: Uint8Array; readonly redacted: number } {
  const type = types.getMessage(name);
  if (type === undefined) return maskRaw(bytes);
  let redacted = 0;
  let named: Named | undefined;
  const mapped = mapStringFields(type, bytes, (text, path) => {
    if (isSecretValue(named, path) && !isTrivial(text)) {
      redacted += 1;
      named = undefined;
      return "*".repeat(Buffer.byteLength(text));
    }
    named = nameIn(text, path);
    const masked = maskText(text);
    redacted += masked.secrets;
    return masked.text;
  });
  return mapped.malformed ? maskRaw(bytes) : { bytes: mapped.bytes, redacted };
}

/** What the last text says about the next one: the paths at which it would be the value of a secret. */
type Named = readonly string[];

/** The value comes right after its name: in a flag, a named value, a map, and among a command's words. */
function nameIn(text: string, path: string): Named | undefined {
  const [, parent = "", field = ""] = /^(.*?)([^.]*)$/.exec(path) ?? [];
  if (field === "args") return /^--?[^=]+$/.test(text) && isSecretName(text.replace(/^-+/, "")) ? [path] : undefined;
  if ((field !== "key" && field !== "name") || !isSecretName(text)) return undefined;
  return [`${parent}value`, `${parent}string`, `${parent}value.string_value`];
}

function isSecretValue(named: Named | undefined, path: string): boolean {
  return named?.includes(path) ?? false;
}

/** What can't be a secret, or is hidden already. */
function isTrivial(value: string): boolean {
  return /^(?:true|false|null|none|yes|no|on|off|\*+|)$/i.test(value);
}

function maskRaw(bytes: Uint8Array): { readonly bytes: Uint8Array; readonly redacted: number } {
  // One character per byte.
  const secrets = secretsIn(Buffer.from(bytes).toString("latin1"));
  if (secrets.length === 0) return { bytes, redacted: 0 };
  const copy = Uint8Array.from(bytes);
  for (const { start, end } of secrets) copy.fill(0x2a, start, end);
  return { bytes: copy, redacted: secrets.length };
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
