import type { Moment } from "@tapedeck/shared/time/moment";

const second = 1_000_000_000n;

/** Each moment that the clock tells, or a nanosecond after the one before where that would not be later. */
export function rising(clock: () => Moment): () => { seconds: bigint; nanos: number } {
  let last = 0n;
  return () => {
    const { seconds, nanos } = clock();
    const told = seconds * second + BigInt(nanos);
    last = told > last ? told : last + 1n;
    return { seconds: last / second, nanos: Number(last % second) };
  };
}
