import { secretsIn } from "./mask-text.ts";

/** Bytes, and how many secrets in them were masked, in place and with the same length. */
export type MaskedBytes = { readonly bytes: Uint8Array; readonly redacted: number };

/** Masks bytes that are no known message as if all of them were text. */
export function maskBytes(bytes: Uint8Array): MaskedBytes {
  // One character per byte.
  const secrets = secretsIn(Buffer.from(bytes).toString("latin1"));
  if (secrets.length === 0) return { bytes, redacted: 0 };
  const copy = Uint8Array.from(bytes);
  for (const { start, end } of secrets) copy.fill(0x2a, start, end);
  return { bytes: copy, redacted: secrets.length };
}
