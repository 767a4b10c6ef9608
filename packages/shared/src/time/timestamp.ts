/** Seconds since 1970 and nanoseconds, as protobuf's Timestamp. */
export type Timestamp = { readonly seconds: bigint; readonly nanos: number };

/** A protobuf timestamp of milliseconds since 1970, with a fraction that is rounded to microseconds. */
export function timestampOfMs(ms: number): Timestamp {
  const seconds = Math.floor(ms / 1_000);
  const micros = Math.round((ms - seconds * 1_000) * 1_000);
  // What is almost a second is rounded to one.
  return micros === 1_000_000
    ? { seconds: BigInt(seconds + 1), nanos: 0 }
    : { seconds: BigInt(seconds), nanos: micros * 1_000 };
}

/** The time by this machine's clock, in whole milliseconds. */
export function timestampNow(): Timestamp {
  return timestampOfMs(Date.now());
}

/** Milliseconds since 1970, with a fraction. */
export function msOfTimestamp({ seconds, nanos }: Timestamp): number {
  return Number(seconds) * 1_000 + nanos / 1_000_000;
}

const nanosPerSecond = 1_000_000_000n;

/** Nanoseconds since 1970 as seconds, rounded down, and the remaining nanoseconds. */
export function timestampOfNanos(nanos: bigint): Timestamp {
  const rest = ((nanos % nanosPerSecond) + nanosPerSecond) % nanosPerSecond;
  return { seconds: (nanos - rest) / nanosPerSecond, nanos: Number(rest) };
}

/** Nanoseconds since 1970. */
export function nanosOfTimestamp({ seconds, nanos }: Timestamp): bigint {
  return seconds * nanosPerSecond + BigInt(nanos);
}

/** How many milliseconds `to` is after `from`. */
export function msBetween(from: Timestamp, to: Timestamp): number {
  return Number(to.seconds - from.seconds) * 1_000 + (to.nanos - from.nanos) / 1_000_000;
}

/** Orders timestamps: negative if `a` is earlier. */
export function compareTimestamps(a: Timestamp, b: Timestamp): number {
  return a.seconds === b.seconds ? a.nanos - b.nanos : a.seconds < b.seconds ? -1 : 1;
}

/** A text that is the same for the same moment; empty without one. */
export function timestampKey(timestamp: Timestamp | undefined): string {
  return timestamp === undefined ? "" : `${timestamp.seconds}.${timestamp.nanos}`;
}

/** The upstream's time of an event; undefined when it has none that a clock could show. */
export function validTimestamp(timestamp: Timestamp | undefined): Timestamp | undefined {
  if (timestamp === undefined) return undefined;
  const { seconds, nanos } = timestamp;
  const isTime = seconds >= -62_135_596_800n && seconds < 253_402_300_800n && nanos >= 0 && nanos < 1_000_000_000;
  return isTime ? { seconds, nanos } : undefined;
}
