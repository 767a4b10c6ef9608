import { createHmac } from "node:crypto";
import type { SourceName } from "@tapedeck/shared/source";

/** A source's own key, so that equal frames of two sources have different hashes. */
export function keyOfSource(key: Uint8Array, source: SourceName): Uint8Array {
  return keyedHash(key, Buffer.from(source));
}

/** HMAC-SHA-256: who has not the key can't try out what was masked. */
export function keyedHash(key: Uint8Array, bytes: Uint8Array): Buffer {
  return createHmac("sha256", key).update(bytes).digest();
}
