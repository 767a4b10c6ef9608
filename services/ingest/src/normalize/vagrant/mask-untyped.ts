import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { type MaskedBytes, maskBytes } from "../../secrets/mask-bytes.ts";
import { maskText } from "../../secrets/mask-text.ts";
import { isSecretName, isTrivial } from "../../secrets/secret-name.ts";

/** Go's and Ruby's libraries begin all type URLs with it. */
export const urlPrefix = "type.googleapis.com/";

export type Untyped = {
  /** What it is called where it stands: the key of an entry of a hash; else empty. */
  readonly name: string;
  /** How many messages it is inside of. */
  readonly depth: number;
  /** Masks what is packed in it, which may be of a known type. */
  readonly maskAny: (typeUrl: string, bytes: Uint8Array, name: string, depth: number) => MaskedBytes;
};

/** Real trees have less than ten levels. */
export const deepest = 32;

/**
 * Masks the secrets in an encoded message without a description here, such as Ruby's own values (Symbol, RawRubyValue,
 * Range …): in place, with the same number of bytes, and so that it is the same message but for its texts. The content
 * of its fields is found by parsing: a message, a text, or a message that reads as a text too.
 */
export function maskUntyped(bytes: Uint8Array, untyped: Untyped): MaskedBytes {
  const copy = Uint8Array.from(bytes);
  const redacted = maskWithin(copy, untyped);
  return redacted === 0 ? { bytes, redacted } : { bytes: copy, redacted };
}

/** Gives how many secrets it has masked. */
function maskWithin(view: Uint8Array, { name, depth, maskAny }: Untyped): number {
  const fields = depth < deepest ? fieldsIn(view) : undefined;
  const inside = (of: Uint8Array, called: string) => maskWithin(of, { name: called, depth: depth + 1, maskAny });
  let redacted = 0;
  const any = fields && anyIn(fields);
  const entry = fields && entryIn(fields);
  if (any !== undefined) {
    const masked = maskAny(any.typeUrl, any.value, name, depth + 1);
    any.value.set(masked.bytes);
    redacted += masked.redacted;
  } else if (entry !== undefined) {
    const called = wordIn(entry.key);
    // Everything inside a secret is secret, whatever its name.
    redacted += inside(entry.key, "") + inside(entry.value, isSecretName(called) ? called : name);
  } else {
    for (const { bytes } of fields ?? []) redacted += inside(bytes, name);
  }
  return redacted + maskAsText(view, name, fields);
}

/** `fields`: it is a message as well, and has to stay the same one. */
function maskAsText(view: Uint8Array, name: string, fields: readonly Field[] | undefined): number {
  const text = textIn(view);
  if (text === undefined) {
    if (fields !== undefined) return 0;
    const masked = maskBytes(view);
    view.set(masked.bytes);
    return masked.redacted;
  }
  if (fields === undefined && isSecretName(name) && !isTrivial(text)) {
    view.fill(asterisk);
    return 1;
  }
  const { text: masked, secrets } = maskText(text);
  if (secrets === 0) return 0;
  const bytes = Buffer.from(masked);
  if (fields !== undefined && shapeOf(fieldsIn(bytes)) !== shapeOf(fields)) return 0;
  view.set(bytes);
  return secrets;
}

const asterisk = 0x2a;

/** A field that holds a message, text or bytes; the bytes are a view. */
type Field = { readonly number: number; readonly at: number; readonly bytes: Uint8Array };

/** The values of a message; undefined for other bytes. */
function fieldsIn(bytes: Uint8Array): readonly Field[] | undefined {
  const reader = new BinaryReader(bytes);
  const fields: Field[] = [];
  try {
    while (reader.pos < reader.len) {
      const [number, type] = reader.tag();
      if (type === WireType.StartGroup || type === WireType.EndGroup) return undefined;
      if (type === WireType.LengthDelimited) {
        const held = reader.bytes();
        fields.push({ number, at: reader.pos - held.length, bytes: held });
      } else {
        reader.skip(type, number);
      }
    }
    return reader.pos === reader.len ? fields : undefined;
  } catch {
    return undefined;
  }
}

function shapeOf(fields: readonly Field[] | undefined): string | undefined {
  return fields?.map(({ number, at, bytes }) => `${number} ${at} ${bytes.length}`).join();
}

/** A google.protobuf.Any, as which it reads. */
function anyIn(fields: readonly Field[]): { readonly typeUrl: string; readonly value: Uint8Array } | undefined {
  const [url, value, ...more] = fields;
  if (url?.number !== 1 || more.length > 0 || (value !== undefined && value.number !== 2)) return undefined;
  const typeUrl = Buffer.from(url.bytes).toString("latin1");
  return typeUrl.startsWith(urlPrefix) ? { typeUrl, value: value?.bytes ?? new Uint8Array() } : undefined;
}

/** An entry of a hash or map: a key and its value. */
function entryIn(fields: readonly Field[]): { readonly key: Uint8Array; readonly value: Uint8Array } | undefined {
  const [key, value, ...more] = fields;
  if (key?.number !== 1 || value?.number !== 2 || more.length > 0) return undefined;
  return { key: key.bytes, value: value.bytes };
}

/** The name that a key is: its own text, or the only one of what it packs, or holds; empty for what is no name. */
function wordIn(key: Uint8Array): string {
  const fields = fieldsIn(key);
  const packed = fields && anyIn(fields);
  if (packed !== undefined) return wordIn(packed.value);
  const [only, ...more] = fields ?? [];
  if (only !== undefined && more.length === 0) return wordIn(only.bytes);
  return /^[@$:]*([\w.-]+)$/.exec(textIn(key) ?? "")?.[1] ?? "";
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const controlCharacter = /\p{Cc}/gu;
/** Line ends, tabs, and the beginning of a colour. */
const printed: ReadonlySet<string> = new Set(["\t", "\n", "\r", "\u001b"]);

function textIn(bytes: Uint8Array): string | undefined {
  try {
    const text = utf8.decode(bytes);
    const isPrinted = text.match(controlCharacter)?.every((one) => printed.has(one)) ?? true;
    return isPrinted ? text : undefined;
  } catch {
    return undefined;
  }
}
