import type { Timestamp } from "@tapedeck/shared/time/timestamp";

const second = 1_000_000_000n;

/** The clock's time, or one nanosecond after the previous time if the clock has not advanced. */
export function monotonicTimes(clock: () => Timestamp): () => { seconds: bigint; nanos: number } {
  let last = 0n;
  return () => {
    const { seconds, nanos } = clock();
    const time = seconds * second + BigInt(nanos);
    last = time > last ? time : last + 1n;
    return { seconds: last / second, nanos: Number(last % second) };
  };
}
