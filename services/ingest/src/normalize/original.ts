import { hash } from "node:crypto";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { asBuffer } from "@tapedeck/shared/as-buffer";

/** A larger frame is recorded without its bytes. */
export const largestFrameBytes = 7 * 1024 * 1024;

const headBytes = 64 * 1024;
const none = Buffer.alloc(0);

/** SHA-256 in hex. */
export function shaOf(bytes: Uint8Array): string {
  return hash("sha256", bytes, "hex");
}

/**
 * The frame as an event carries it: with its bytes, or with their hash and head if the log would not take them.
 * `identity`: see event.proto.
 */
export function originalOf(
  type: string,
  bytes: Uint8Array,
  limit: number,
  identity?: Buffer,
): NonNullable<Event["original"]> {
  const size = BigInt(bytes.byteLength);
  const known = identity === undefined ? {} : { identity };
  if (bytes.byteLength <= limit) return { type, bytes: asBuffer(bytes), size, sha256: none, head: none, ...known };
  return {
    ...known,
    type,
    bytes: none,
    size,
    sha256: Buffer.from(shaOf(bytes), "hex"),
    head: asBuffer(bytes).subarray(0, headBytes),
  };
}

/** The hashes by which a recorded frame is known again: of its bytes before masking, if that changed them, and after. */
export function recordedHashes(original: NonNullable<Event["original"]>): readonly string[] {
  const { identity } = original;
  const sha = recordedSha(original);
  return identity === undefined ? [sha] : [asBuffer(identity).toString("hex"), sha];
}

/** SHA-256 of a recorded frame's bytes, even if the log did not take them. */
export function recordedSha({ bytes, sha256 }: NonNullable<Event["original"]>): string {
  return sha256.byteLength > 0 ? asBuffer(sha256).toString("hex") : shaOf(bytes);
}
