import type { TextSpan } from "../span.ts";

/**
 * Tokens without a fixed beginning. Each pattern begins where a run of its characters begins, or has a lookbehind of
 * fixed length, so that no text is read more than a few times.
 */
const odd: readonly RegExp[] = [
  // JSON Web Tokens, signed and encrypted.
  /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*/g,
  /(?<![A-Za-z0-9_.-])eyJ[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]*){4}/g,
  // Azure's client secrets.
  /(?<![\w.~-])[\w.~]{3}[0-9]Q~[\w.~-]{31,34}(?![\w.~-])/g,
  // Telegram's bots.
  /(?<![0-9])[0-9]{8,10}:AA[\w-]{32,33}(?![\w-])/g,
  // Terraform Cloud.
  /(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,70}/g,
  // Keys of Azure that have a mark in them.
  /(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{52}JQQJ99[A-Za-z0-9+/]{20,34}={0,2}/g,
  // Mailchimp, New Relic's licences.
  /(?<![0-9A-Za-z])[0-9a-f]{32}-us[0-9]{1,2}(?![0-9A-Za-z])/g,
  /(?<![0-9A-Za-z])[0-9a-f]{36}NRAL(?![0-9A-Za-z])/g,
  // Hashes of passwords, in .htpasswd and /etc/shadow.
  /(?<=:)\$(?:apr1|2[abxy]|[156y]|argon2(?:id|i|d))\$[\w./$,=+-]{20,200}/g,
  // Webhooks of Teams.
  /webhook\.office\.com\/webhookb2\/[\w@/-]{60,}/g,
  // Twilio.
  /(?<![A-Za-z0-9])SK[0-9a-f]{32}(?![0-9A-Za-z])/g,
];

export function oddTokens(text: string): TextSpan[] {
  return odd.flatMap((pattern) =>
    Array.from(text.matchAll(pattern), ({ index, 0: { length } }) => ({ start: index, end: index + length })),
  );
}
