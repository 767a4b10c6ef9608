import type { Moment } from "@tapedeck/ingest/normalize/normalizer";

export function momentOfMs(ms: number): Moment {
  const seconds = Math.floor(ms / 1_000);
  return { seconds: BigInt(seconds), nanos: Math.round((ms - seconds * 1_000) * 1_000) * 1_000 };
}

export function momentNow(): Moment {
  return momentOfMs(Date.now());
}

export function msOfMoment({ seconds, nanos }: Moment): number {
  return Number(seconds) * 1_000 + nanos / 1_000_000;
}

/** How many milliseconds `to` is after `from`. */
export function msBetween(from: Moment, to: Moment): number {
  return Number(to.seconds - from.seconds) * 1_000 + (to.nanos - from.nanos) / 1_000_000;
}

export function compareMoments(a: Moment, b: Moment): number {
  return a.seconds === b.seconds ? a.nanos - b.nanos : a.seconds < b.seconds ? -1 : 1;
}

export function momentKey(moment: Moment | undefined): string {
  return moment === undefined ? "" : `${moment.seconds}.${moment.nanos}`;
}
