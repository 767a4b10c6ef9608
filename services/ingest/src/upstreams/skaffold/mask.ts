import { mapStringFields } from "@tapedeck/shared/descriptors/mask-strings";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import { maskText, secretsIn } from "../../secrets/mask-text.ts";

const types: ReadonlyMap<string, ReturnType<typeof messageType>> = new Map([
  ["v1", messageType("proto.LogEntry")],
  ["v2", messageType("proto.v2.Event")],
  ["logs", messageType("proto.v2.Event")],
]);

/**
 * Masks secrets in the string fields of a frame, in place; `redacted` counts them. Bytes that are no such message are
 * recorded as well, so they are masked as if all of them were text.
 */
export function mask(channel: string, bytes: Uint8Array): { readonly bytes: Uint8Array; readonly redacted: number } {
  const type = types.get(channel);
  if (type === undefined) return maskRaw(bytes);
  let redacted = 0;
  const mapped = mapStringFields(type, bytes, (text) => {
    const masked = maskText(text);
    redacted += masked.secrets;
    return masked.text;
  });
  return mapped.malformed ? maskRaw(bytes) : { bytes: mapped.bytes, redacted };
}

function maskRaw(bytes: Uint8Array): { readonly bytes: Uint8Array; readonly redacted: number } {
  // One character per byte.
  const secrets = secretsIn(Buffer.from(bytes).toString("latin1"));
  if (secrets.length === 0) return { bytes, redacted: 0 };
  const copy = Uint8Array.from(bytes);
  for (const { start, end } of secrets) copy.fill(0x2a, start, end);
  return { bytes: copy, redacted: secrets.length };
}
