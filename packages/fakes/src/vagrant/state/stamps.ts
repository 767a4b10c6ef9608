import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import { nanosOfTimestamp, timestampOfNanos } from "@tapedeck/shared/time/timestamp";
import { ulid } from "ulid";

/** Where a server gets its times and ids from. */
export type Stamps = {
  readonly now: () => Timestamp;
  /** A ULID of now. */
  readonly id: () => string;
  /** Calls in here get these first, in their order. */
  readonly lend: <T>(lent: Lent, call: () => T) => T;
};

export type Lent = { readonly times?: readonly Timestamp[]; readonly ids?: readonly string[] };

/** `now`: ms since 1970. No two times are the same. */
export function makeStamps(now: () => number): Stamps {
  let last = 0n;
  let times: Timestamp[] = [];
  let ids: string[] = [];
  return {
    now() {
      const lent = times.shift();
      if (lent !== undefined) return lent;
      const read = BigInt(Math.round(now() * 1e3)) * 1_000n;
      last = read > last ? read : last + 1n;
      return timestampOfNanos(last);
    },
    id: () => ids.shift() ?? ulid(Math.floor(now())),
    lend(lent, call) {
      times = [...(lent.times ?? [])];
      ids = [...(lent.ids ?? [])];
      try {
        return call();
      } finally {
        times = [];
        ids = [];
      }
    },
  };
}

export function plus(time: Timestamp, nanos: bigint): Timestamp {
  return timestampOfNanos(nanosOfTimestamp(time) + nanos);
}

const units = { ns: 1, us: 1e3, µs: 1e3, μs: 1e3, ms: 1e6, s: 1e9, m: 60e9, h: 3600e9 };

/** Nanoseconds of a duration as Go writes it ("1m30s", "-2s", "0"); undefined if it is none. */
export function goDuration(text: string): bigint | undefined {
  const [, sign, rest = ""] = /^([+-]?)(.*)$/s.exec(text) ?? [];
  if (rest === "0") return 0n;
  if (!/^((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$/.test(rest)) return undefined;
  let nanos = 0;
  for (const [, number, unit] of rest.matchAll(/([\d.]+)([a-zµμ]+)/g)) {
    nanos += Number(number) * units[unit as keyof typeof units];
  }
  return BigInt(Math.round(nanos)) * (sign === "-" ? -1n : 1n);
}
