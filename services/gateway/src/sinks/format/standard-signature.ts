import { createHmac, randomBytes } from "node:crypto";
import type { SentRequest } from "./format.ts";

// Standard Webhooks 1.0.0, symmetric signatures (v1). Node's HMAC is native code; that of the reference library, in JavaScript, would
// cost more than all the rest of a delivery.

const prefix = "whsec_";

/** The bounds of the specification. */
const [minBytes, maxBytes] = [24, 64];

export function newSigningSecret(): string {
  return prefix + randomBytes(32).toString("base64");
}

/** Why a text is no signing secret; undefined: it is one. */
export function signingSecretError(text: string): string | undefined {
  const encoded = text.startsWith(prefix) ? text.slice(prefix.length) : text;
  const key = Buffer.from(encoded, "base64");
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) return `is not ${prefix} and base64`;
  if (key.byteLength < minBytes || key.byteLength > maxBytes) return `does not have ${minBytes} to ${maxBytes} bytes`;
  return undefined;
}

/** The headers of a request at a moment. */
export function signatureHeaders(
  secret: string,
  { id, body }: SentRequest,
  at: Date,
): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(at.getTime() / 1_000));
  const key = Buffer.from(secret.startsWith(prefix) ? secret.slice(prefix.length) : secret, "base64");
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64");
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": `v1,${signature}` };
}
