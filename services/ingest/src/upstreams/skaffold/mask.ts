import { mapStringFields } from "@tapedeck/shared/descriptors/mask-strings";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import { type Masked, maskBytes } from "../../secrets/mask-bytes.ts";
import { maskText } from "../../secrets/mask-text.ts";

const types: ReadonlyMap<string, ReturnType<typeof messageType>> = new Map([
  ["v1", messageType("proto.LogEntry")],
  ["v2", messageType("proto.v2.Event")],
  ["logs", messageType("proto.v2.Event")],
]);

/**
 * Masks secrets in the string fields of a frame, in place; `redacted` counts them. Bytes that are no such message are
 * recorded as well, so they are masked as if all of them were text.
 */
export function mask(channel: string, bytes: Uint8Array): Masked {
  const type = types.get(channel);
  if (type === undefined) return maskBytes(bytes);
  let redacted = 0;
  const mapped = mapStringFields(type, bytes, (text) => {
    const masked = maskText(text);
    redacted += masked.secrets;
    return masked.text;
  });
  return mapped.malformed ? maskBytes(bytes) : { bytes: mapped.bytes, redacted };
}
