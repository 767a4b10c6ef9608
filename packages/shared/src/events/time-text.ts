/** A google.protobuf.Timestamp in any of the forms in which it is read. */
export type WireTime = { readonly seconds: bigint; readonly nanos: number };

/** Years 1 to 9999, as google.protobuf.Timestamp and RFC 3339 have them. */
const first = -62_135_596_800;
const last = 253_402_300_799;

/** Texts of seconds that were written lately, by the second modulo their number: an event has up to four times near each other. */
const slots = 64;
const knownSeconds = new Float64Array(slots).fill(Number.NaN);
const knownTexts: string[] = new Array(slots).fill("");

/**
 * RFC 3339, UTC, with 0, 3, 6 or 9 decimals.
 * @throws RangeError for a time before year 1 or after year 9999, and for nanoseconds that are no part of a second
 */
export function timeToJson({ seconds, nanos }: WireTime): string {
  return timeText(Number(seconds), nanos);
}

/** The same for the log's own time, which has milliseconds. */
export function dateToJson(date: Date): string {
  const ms = date.getTime();
  const second = Math.floor(ms / 1_000);
  return timeText(second, (ms - second * 1_000) * 1_000_000);
}

function timeText(second: number, nanos: number): string {
  const slot = Math.abs(second % slots);
  if (knownSeconds[slot] !== second) {
    if (!(second >= first && second <= last)) throw new RangeError("a time must be in the years 1 to 9999");
    knownTexts[slot] = new Date(second * 1_000).toISOString().slice(0, 19);
    knownSeconds[slot] = second;
  }
  return nanos === 0 ? `${knownTexts[slot]}Z` : `${knownTexts[slot]}.${decimals(nanos)}Z`;
}

function decimals(nanos: number): string {
  if (!(nanos > 0 && nanos < 1e9)) throw new RangeError("the nanoseconds of a time must be 0 to 999999999");
  const digits = String(1e9 + nanos).slice(1);
  if (digits.endsWith("000000")) return digits.slice(0, 3);
  return digits.endsWith("000") ? digits.slice(0, 6) : digits;
}
