/** Bytes within a state, which is plain JSON. */
export type Base64 = string;

export function base64(bytes: Uint8Array): Base64 {
  return Buffer.from(bytes).toString("base64");
}

export function fromBase64(text: Base64): Uint8Array {
  return Buffer.from(text, "base64");
}
