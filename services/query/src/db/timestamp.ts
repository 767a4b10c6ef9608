import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import { nanosOfTimestamp } from "@tapedeck/shared/time/timestamp";

/** A timestamp as two columns: text with microseconds for timestamptz, and the remaining nanoseconds. */
export type StoredTimestamp = { readonly at: string | null; readonly ns: number };

const unknown: StoredTimestamp = { at: null, ns: 0 };
const firstSecond = -62_135_596_800n;
const lastSecond = 253_402_300_799n;

/** An upstream may send a time outside the years 1 to 9999, which counts as unknown. */
export function storedTimestamp(timestamp: Timestamp | undefined): StoredTimestamp {
  if (timestamp === undefined) return unknown;
  const { seconds: second, nanos } = timestamp;
  if (second < firstSecond || second > lastSecond || nanos < 0 || nanos > 999_999_999) return unknown;
  const micros = Math.floor(nanos / 1_000);
  return { at: `${seconds.of(Number(second))}.${String(micros).padStart(6, "0")}Z`, ns: nanos % 1_000 };
}

/** Neighboring events are of the same second, and making its text is most of the work. */
class LatestText {
  readonly #textOf: (time: number) => string;
  #time = Number.NaN;
  #text = "";

  constructor(textOf: (time: number) => string) {
    this.#textOf = textOf;
  }

  of(time: number): string {
    if (time !== this.#time) [this.#time, this.#text] = [time, this.#textOf(time)];
    return this.#text;
  }
}

const seconds = new LatestText((second) => new Date(second * 1_000).toISOString().slice(0, 19));
const dates = new LatestText((ms) => `${new Date(ms).toISOString().slice(0, 23)}000Z`);

/** A date outside the years 1 to 9999 is the nearest one within. */
export function textOfDate(date: Date): string {
  const ms = Math.min(Math.max(date.getTime() || 0, Number(firstSecond) * 1_000), Number(lastSecond) * 1_000);
  return dates.of(ms);
}

/** The inverse of momentOf. */
export function timestampOf(at: string | null, ns: number): Timestamp | undefined {
  if (at === null) return undefined;
  return { seconds: BigInt(Date.parse(`${at.slice(0, 19)}Z`)) / 1_000n, nanos: Number(at.slice(20, 26)) * 1_000 + ns };
}

/** No recorded tool is older. A clock that was never set shows 1970. */
const earliestSecond = 946_684_800n;

/** Like timestampOf. Undefined also for a time before 2000, which no right clock can have shown. */
export function possibleTimestampOf(at: string | null, ns: number): Timestamp | undefined {
  const timestamp = timestampOf(at, ns);
  return timestamp !== undefined && timestamp.seconds >= earliestSecond ? timestamp : undefined;
}
/** Parallel senders, and machines whose clocks agree well, may stamp an end before its start by less. */
const maxBackwards = 60_000_000_000n;

/**
 * Whole milliseconds between two moments. An end that is a little before its start counts as 0. Null where either is
 * unknown, and where no right clock can have shown both: a moment before 2000, an end more than a minute before its
 * start, or more than `maxMs` between them.
 */
export function millisecondsBetween(start: StoredTimestamp, end: StoredTimestamp, maxMs: number): number | null {
  const from = timestampOf(start.at, start.ns);
  const to = timestampOf(end.at, end.ns);
  if (from === undefined || to === undefined || from.seconds < earliestSecond || to.seconds < earliestSecond)
    return null;
  const nanos = nanosOfTimestamp(to) - nanosOfTimestamp(from);
  if (nanos < -maxBackwards) return null;
  const ms = nanos < 0n ? 0 : Number(nanos / 1_000_000n);
  return ms > maxMs ? null : ms;
}
