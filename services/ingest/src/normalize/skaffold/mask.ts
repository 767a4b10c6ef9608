import { BinaryReader } from "@bufbuild/protobuf/wire";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import { maskContinued, maskPiece } from "../../secrets/continued-text.ts";
import { type MaskedBytes, maskBytes } from "../../secrets/mask-bytes.ts";
import { maskText } from "../../secrets/mask-text.ts";
import type { Piece } from "../../secrets/pieces.ts";
import { mayHoldSecrets } from "../../secrets/triggers.ts";
import { mapStringFields } from "../mask-strings.ts";

const types: ReadonlyMap<string, ReturnType<typeof messageType>> = new Map([
  ["v1", messageType("proto.LogEntry")],
  ["v2", messageType("proto.v2.Event")],
  ["logs", messageType("proto.v2.Event")],
]);

/** Output as Skaffold or a container wrote it: a line, or as much as was written at once. */
const output = /^(?:skaffoldLogEvent|applicationLogEvent)\.message$/;
/** The fields that identify a stream of output. */
const place = /^(?:skaffoldLogEvent\.(?:task_id|subtask_id)|applicationLogEvent\.(?:podName|containerName))$/;

/**
 * Masks secrets in the string fields of a frame, in place; `redacted` counts them. Bytes that are no such message are
 * recorded as well, so they are masked as if all of them were text.
 */
export function mask(channel: string, bytes: Uint8Array): MaskedBytes & { readonly piece?: Piece } {
  const type = types.get(channel);
  if (!mayHoldSecrets(bytes)) {
    const piece = isOutput(channel, bytes) ? pieceOf(channel, bytes) : undefined;
    return { bytes, redacted: 0, ...(piece !== undefined && { piece }) };
  }
  if (type === undefined) return maskBytes(bytes);
  let redacted = 0;
  let stream = "";
  let printed: string | undefined;
  const mapped = mapStringFields(type, bytes, (text, path) => {
    const masked = output.test(path) ? maskPiece(text) : maskText(text);
    if (output.test(path)) printed = masked.text;
    else if (place.test(path)) stream += `${path}=${masked.text};`;
    redacted += masked.secrets;
    return masked.text;
  });
  if (mapped.malformed) return maskBytes(bytes);
  return { bytes: mapped.bytes, redacted, ...(printed !== undefined && { piece: { stream, text: printed } }) };
}

/** skaffoldLogEvent and applicationLogEvent of proto.v2.Event. */
const outputFields: readonly number[] = [3, 4];

/** Reads only which fields the frame has. */
function isOutput(channel: string, bytes: Uint8Array): boolean {
  if (channel === "v1") return false;
  const reader = new BinaryReader(bytes);
  try {
    while (reader.pos < reader.len) {
      const [field, type] = reader.tag();
      if (outputFields.includes(field)) return true;
      reader.skip(type, field);
    }
  } catch {
    // No such message: it has no output.
  }
  return false;
}

/** The output of a recorded frame. */
export function pieceOf(channel: string, bytes: Uint8Array): Piece | undefined {
  const type = types.get(channel);
  if (type === undefined) return undefined;
  let stream = "";
  let printed: string | undefined;
  const { malformed } = mapStringFields(type, bytes, (text, path) => {
    if (output.test(path)) printed = text;
    else if (place.test(path)) stream += `${path}=${text};`;
    return undefined;
  });
  return printed === undefined || malformed ? undefined : { stream, text: printed };
}

/** Masks a masked frame that continues a stream of output whose last piece ended in `tail`. */
export function maskAfter(channel: string, bytes: Uint8Array, tail: string): MaskedBytes & { readonly text: string } {
  const type = types.get(channel);
  let redacted = 0;
  let printed = "";
  if (type === undefined) return { bytes, redacted, text: printed };
  const mapped = mapStringFields(type, bytes, (text, path) => {
    if (!output.test(path)) return undefined;
    const masked = maskContinued(tail, text);
    printed = masked.text;
    redacted += masked.secrets;
    return masked.text;
  });
  return { bytes: mapped.bytes, redacted, text: printed };
}
