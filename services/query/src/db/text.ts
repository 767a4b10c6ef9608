import { createHash } from "node:crypto";

/** Replaces what text in Postgres can't hold: NUL, and halves of a character. */
export function text(value: string): string {
  const clean = value.includes("\0") ? value.replaceAll("\0", "\uFFFD") : value;
  return clean.isWellFormed() ? clean : clean.toWellFormed();
}

/**
 * The longest key, in bytes of UTF-8. An index row may have 2,704: two keys fit beside a session and a source's name with its
 * parts, which have at most 541 together.
 */
const keyBytes = 500;
/** Those of "…" and a hash. */
const endBytes = 3 + 64;

/** Text for an indexed column. A longer text ends in its hash. */
export function key(value: string): string {
  const clean = text(value);
  if (3 * clean.length <= keyBytes) return clean;
  const bytes = Buffer.from(clean);
  if (bytes.length <= keyBytes) return clean;
  const hash = createHash("sha256").update(bytes).digest("hex");
  // A stream leaves out a character that is cut.
  return `${new TextDecoder().decode(bytes.subarray(0, keyBytes - endBytes), { stream: true })}…${hash}`;
}

const longLimit = 65_536;

/** Text for people, such as an error, cut to 64 Ki characters. The log has the rest. */
export function longText(value: string): string {
  const clean = text(value);
  return clean.length <= longLimit ? clean : `${clean.slice(0, longLimit - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** A protobuf message (of ts-proto) as JSON for jsonb: names as in the .proto, 64-bit integers as text, bytes as base64. */
export function plain(value: unknown): unknown {
  if (typeof value === "string") return text(value);
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, member]) => name !== "_unknownFields" && member !== undefined)
      .map(([name, member]) => [text(name), plain(member)]),
  );
}
