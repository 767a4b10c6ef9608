import { assignedSecrets } from "./assigned-secrets.ts";
import { shapedSecrets } from "./secret-shapes.ts";
import { merged, type Span } from "./span.ts";

/**
 * The text with `*` for every byte of every secret in it, so that it takes as many bytes as before; line ends stay.
 * What is masked already is no secret, so masking twice changes nothing. Time is linear in the length of the text.
 */
export function maskText(text: string): { readonly text: string; readonly secrets: number } {
  const once = maskOnce(text);
  // What one rule has masked may have been where another took a value to end: `PASSWORD://:)@`.
  let masked = once;
  for (let again = 0; masked.secrets > 0 && again < mostTimes; again += 1) masked = maskOnce(masked.text);
  return { text: masked.text, secrets: once.secrets };
}

/** More than once is rare, more than twice was never seen. */
const mostTimes = 8;

function maskOnce(text: string): { readonly text: string; readonly secrets: number } {
  const spans = secretsIn(text);
  if (spans.length === 0) return { text, secrets: 0 };
  const pieces: string[] = [];
  let done = 0;
  for (const { start, end } of spans) {
    pieces.push(text.slice(done, start), stars(text.slice(start, end)));
    done = end;
  }
  pieces.push(text.slice(done));
  return { text: pieces.join(""), secrets: spans.length };
}

/** Where the secrets are that are not masked yet. */
export function secretsIn(text: string): Span[] {
  const spans = merged([...assignedSecrets(text), ...shapedSecrets(text)]);
  return spans.filter(({ start, end }) => !isMasked(text, start, end));
}

function stars(secret: string): string {
  return secret
    .split(/(\r?\n)/)
    .map((part, index) => (index % 2 === 1 ? part : "*".repeat(Buffer.byteLength(part))))
    .join("");
}

function isMasked(text: string, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) if (!"*\r\n".includes(text.charAt(at))) return false;
  return true;
}
