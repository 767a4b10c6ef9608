import { assignedSecrets } from "./assigned/assigned-secrets.ts";
import type { TextSpan } from "./span.ts";

/** Names of secrets, as they may be written. */
const names = [
  ...["password", "PASSWORD", "Password", "passwd", "PASSWD", "secret", "SECRET", "Secret", "token", "TOKEN", "Token"],
  ...["api_key", "API_KEY", "apiKey", "apikey", "ApiKey", "PRIVATE KEY", "credential", "CREDENTIAL"],
];

/** The characters that a name certainly has in base64, for each of the three places where it may begin. */
const encoded = [
  ...new Set(
    names.flatMap((name) =>
      [0, 1, 2].map((offset) => {
        const text = Buffer.from("\0".repeat(offset) + name).toString("base64");
        return text.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + name.length) * 8) / 6));
      }),
    ),
  ),
];

/** Four characters each, as `triggers.ts` takes them. */
export const base64Triggers: readonly string[] = encoded.map((name) => name.slice(0, 4));

const name = new RegExp(encoded.join("|").replaceAll("+", "\\+"), "g");
const isBase64 = Uint8Array.from({ length: 128 }, (_, code) => (/[\w+/-]/.test(String.fromCharCode(code)) ? 1 : 0));
/** A longer text is a file, and not an assignment. */
const longest = 8_192;

/** Finds base64 of texts that assign a secret: `UEFTU1dPUkQ9…`, `eyJwYXNzd29yZCI6…`. All of it is masked. */
export function base64Secrets(text: string): TextSpan[] {
  const spans: TextSpan[] = [];
  let searched = 0;
  for (const { index } of text.matchAll(name)) {
    if (index < searched) continue;
    let start = index;
    while (start > searched && index - start < longest && isBase64[text.charCodeAt(start - 1)] === 1) start -= 1;
    let end = index;
    while (end < text.length && end - index < longest && isBase64[text.charCodeAt(end)] === 1) end += 1;
    searched = end;
    if (end - start < 16) continue;
    const decoded = Buffer.from(text.slice(start, end), "base64").toString("latin1");
    // A part of something else, such as a picture, decodes to no text.
    if (!/^[\t\r\n\x20-\x7e]+$/.test(decoded)) continue;
    const isSecret = /-----BEGIN [A-Z ]{0,30}PRIVATE KEY/.test(decoded) || assignedSecrets(decoded).length > 0;
    if (!isSecret) continue;
    while (text.charAt(end) === "=" && end - searched < 2) end += 1;
    spans.push({ start, end });
    searched = end;
  }
  return spans;
}
