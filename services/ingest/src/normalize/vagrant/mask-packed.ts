import { create, createFileRegistry, type DescMessage, fromBinary, type Message } from "@bufbuild/protobuf";
import {
  type Any,
  AnySchema,
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
  StringValueSchema,
} from "@bufbuild/protobuf/wkt";
import { asBuffer } from "@tapedeck/shared/as-buffer";
import { registry } from "@tapedeck/shared/descriptors/registry";
import type { MaskedBytes } from "../../secrets/mask-bytes.ts";
import { urlPrefix } from "./mask-untyped.ts";

/** A message that is packed in another, and its name there: the key of an entry of a Ruby hash; else empty. */
type Packed = { readonly any: Any; readonly name: string };

/** `typeUrl`: the type of the packed message, which packedType may know. */
export type MaskPacked = (typeUrl: string, bytes: Uint8Array, name: string) => MaskedBytes;

/** Masks the messages in the Anys of an encoded message, by `maskOne`, which keeps lengths. */
export function maskPacked(type: DescMessage, bytes: Uint8Array, maskOne: MaskPacked): MaskedBytes {
  if (!asBuffer(bytes).includes(urlPrefix)) return { bytes, redacted: 0 };
  const copy = Uint8Array.from(bytes);
  let redacted = 0;
  for (const { any, name } of packedIn(decoded(type, copy))) {
    const masked = maskOne(any.typeUrl, any.value, name);
    // The decoder's bytes are a view of the copy.
    any.value.set(masked.bytes);
    redacted += masked.redacted;
  }
  return redacted === 0 ? { bytes, redacted } : { bytes: copy, redacted };
}

/** Undefined for a type that the proto workspace does not describe: most of Ruby's own (Args.Symbol, RawRubyValue …). */
export function packedType(typeUrl: string): DescMessage | undefined {
  const name = typeUrl.slice(urlPrefix.length);
  return name === StringValueSchema.typeName
    ? StringValueSchema
    : (lists.getMessage(name) ?? registry.getMessage(name));
}

/** A Ruby array. Messages of the service hold it only in an Any, and a Vagrantfile has many. */
const list = {
  name: "list",
  number: 1,
  label: FieldDescriptorProto_Label.REPEATED,
  type: FieldDescriptorProto_Type.MESSAGE,
  typeName: `.${AnySchema.typeName}`,
};
const lists = createFileRegistry(
  create(FileDescriptorProtoSchema, {
    name: "lists.proto",
    package: "hashicorp.vagrant.sdk",
    syntax: "proto3",
    dependency: [AnySchema.file.proto.name],
    messageType: [{ name: "Args", nestedType: [{ name: "Array", field: [list] }] }],
  }),
  (path) => registry.getFile(path),
);

/** Undefined for bytes that are no such message. */
function decoded(type: DescMessage, bytes: Uint8Array): Message | undefined {
  try {
    return fromBinary(type, bytes, { readUnknownFields: false });
  } catch {
    return undefined;
  }
}

/** The Anys of a message, at any depth but inside other Anys. */
function* packedIn(value: unknown, name = ""): Generator<Packed> {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return;
  if (isMessage<Any>(value, "google.protobuf.Any")) {
    yield { any: value, name };
  } else if (isMessage<HashEntry>(value, "hashicorp.vagrant.sdk.Args.HashEntry")) {
    yield* packedIn(value.key);
    yield* packedIn(value.value, onlyText(value.key));
  } else {
    for (const inside of Object.values(value)) yield* packedIn(inside);
  }
}

type HashEntry = Message & { readonly key?: Any; readonly value?: Any };

function isMessage<T extends Message>(value: object, typeName: string): value is T {
  return "$typeName" in value && value.$typeName === typeName;
}

/** The text of a message that has nothing but a short text as its first field: a string or a symbol of Ruby's. */
function onlyText(any: Any | undefined): string {
  const [tag, length, ...text] = any?.value.subarray(0, 130) ?? [];
  return tag === 0x0a && length === text.length && length < 128 ? Buffer.from(text).toString() : "";
}
