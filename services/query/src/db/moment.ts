import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import { nanosOfTimestamp } from "@tapedeck/shared/time/timestamp";

/** A timestamp as two columns: text with microseconds for timestamptz, and the remaining nanoseconds. */
export type StoredMoment = { readonly at: string | null; readonly ns: number };

const unknown: StoredMoment = { at: null, ns: 0 };
const firstSecond = -62_135_596_800n;
const lastSecond = 253_402_300_799n;

/** An upstream may send a time outside the years 1 to 9999, which counts as unknown. */
export function momentOf(timestamp: Timestamp | undefined): StoredMoment {
  if (timestamp === undefined) return unknown;
  const { seconds, nanos } = timestamp;
  if (seconds < firstSecond || seconds > lastSecond || nanos < 0 || nanos > 999_999_999) return unknown;
  const micros = Math.floor(nanos / 1_000);
  return { at: `${secondText(Number(seconds))}.${String(micros).padStart(6, "0")}Z`, ns: nanos % 1_000 };
}

/** Neighboring events are of the same second, and making its text is most of the work. */
let latest = { second: Number.NaN, text: "" };

function secondText(second: number): string {
  if (second !== latest.second) latest = { second, text: new Date(second * 1_000).toISOString().slice(0, 19) };
  return latest.text;
}

/** A date outside the years 1 to 9999 is the nearest one within. */
export function momentOfDate(date: Date): string {
  const ms = Math.min(Math.max(date.getTime() || 0, Number(firstSecond) * 1_000), Number(lastSecond) * 1_000);
  return `${new Date(ms).toISOString().slice(0, 23)}000Z`;
}

/** The inverse of momentOf. */
export function timestampOf(at: string | null, ns: number): Timestamp | undefined {
  if (at === null) return undefined;
  return { seconds: BigInt(Date.parse(`${at.slice(0, 19)}Z`)) / 1_000n, nanos: Number(at.slice(20, 26)) * 1_000 + ns };
}

/** Whole milliseconds between two moments. Parallel senders may stamp an end before its start, which counts as 0. */
export function millisecondsBetween(start: StoredMoment, end: StoredMoment): number | null {
  const from = timestampOf(start.at, start.ns);
  const to = timestampOf(end.at, end.ns);
  if (from === undefined || to === undefined) return null;
  const nanos = nanosOfTimestamp(to) - nanosOfTimestamp(from);
  return nanos < 0n ? 0 : Number(nanos / 1_000_000n);
}
