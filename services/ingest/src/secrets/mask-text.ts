import { assignedSecrets } from "./assigned/assigned-secrets.ts";
import { encodedAssignments } from "./assigned/encoded-assignments.ts";
import { otherLanguages } from "./assigned/other-languages.ts";
import { base64Secrets } from "./base64-secrets.ts";
import { withoutColours } from "./colours.ts";
import { commandSecrets } from "./command-secrets.ts";
import { headerSecrets } from "./header-secrets.ts";
import { kubernetesSecrets } from "./kubernetes-secrets.ts";
import { privateKeys } from "./private-keys.ts";
import { merged, type TextSpan } from "./span.ts";
import { oddTokens } from "./tokens/odd-tokens.ts";
import { tokenSecrets } from "./tokens/token-secrets.ts";
import { may, triggersIn } from "./triggers.ts";
import { urlSecrets } from "./url-secrets.ts";

export type MaskedText = { readonly text: string; readonly secrets: number };

/**
 * The text with `*` for every byte of every secret in it, so that it takes as many bytes as before; line ends stay.
 * Masked text is no secret, so masking twice changes nothing. Time is linear in the length of the text.
 */
export function maskText(text: string): MaskedText {
  const once = maskOnce(text);
  // The text that one rule has masked may have been where another took a value to end: `PASSWORD://:)@`.
  let masked = once;
  for (let again = 0; masked.secrets > 0 && again < maxTimes; again += 1) masked = maskOnce(masked.text);
  return { text: masked.text, secrets: once.secrets };
}

/** A second pass is rarely needed, and a third has never been. */
const maxTimes = 8;

function maskOnce(text: string): MaskedText {
  const spans = secretsIn(text);
  return { text: maskSpans(text, spans), secrets: spans.length };
}

/** The text with `*` in place of these spans. */
export function maskSpans(text: string, unsorted: readonly TextSpan[]): string {
  const spans = merged(unsorted);
  if (spans.length === 0) return text;
  const pieces: string[] = [];
  let done = 0;
  for (const { start, end } of spans) {
    pieces.push(text.slice(done, start), stars(text.slice(start, end)));
    done = end;
  }
  pieces.push(text.slice(done));
  return pieces.join("");
}

const none: readonly TextSpan[] = [];

/** The spans of secrets that are not masked yet. */
export function secretsIn(text: string): readonly TextSpan[] {
  const colourless = withoutColours(text);
  return colourless === undefined ? secretsInPlain(text) : colourless.spansIn(secretsInPlain(colourless.text));
}

function secretsInPlain(text: string): readonly TextSpan[] {
  const { rules, places } = triggersIn(text);
  if (rules === 0) return none;
  const spans = [
    ...((rules & may.name) !== 0
      ? [...assignedSecrets(text), ...encodedAssignments(text), ...kubernetesSecrets(text)]
      : none),
    ...((rules & may.token) !== 0 ? tokenSecrets(text, places) : none),
    ...((rules & may.oddToken) !== 0 ? oddTokens(text) : none),
    ...((rules & may.url) !== 0 ? urlSecrets(text) : none),
    ...((rules & may.header) !== 0 ? headerSecrets(text) : none),
    ...((rules & may.privateKey) !== 0 ? privateKeys(text) : none),
    ...((rules & may.otherLanguage) !== 0 ? otherLanguages(text) : none),
    ...((rules & may.base64) !== 0 ? base64Secrets(text) : none),
    ...((rules & may.command) !== 0 ? commandSecrets(text) : none),
  ];
  if (spans.length === 0) return none;
  return merged(spans).filter(({ start, end }) => !isMasked(text, start, end));
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
