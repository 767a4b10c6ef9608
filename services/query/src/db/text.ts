import { createHash } from "node:crypto";

/** Replaces NUL, which text in Postgres can't hold. */
export function text(value: string): string {
  return value.includes("\0") ? value.replaceAll("\0", "\uFFFD") : value;
}

const keyLimit = 500;

/** Text for an indexed column. Index entries are limited to about 2,700 bytes, so a longer text ends in its hash. */
export function key(value: string): string {
  const clean = text(value);
  if (clean.length <= keyLimit) return clean;
  const hash = createHash("sha256").update(clean).digest("hex");
  return `${clean.slice(0, keyLimit - 65).replace(/[\uD800-\uDBFF]$/, "")}…${hash}`;
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
