import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";

/** Ms since 1970, and ms since some moment: the first is the wall clock, the second has finer steps. */
export type Clocks = { readonly wall: () => number; readonly steady: () => number };

const theirs: Clocks = { wall: Date.now, steady: () => performance.now() };
/** Smaller jumps are ordinary clock adjustments, or reads between two steps of the wall clock. */
const jumpMs = 1_000;

/**
 * Gives the time in microseconds; follows the wall clock where it jumps (the steady one may stand still in a sleep).
 */
export function wallClock({ wall, steady }: Clocks = theirs): () => Timestamp {
  let origin = wall() - steady();
  return () => {
    const sinceOrigin = steady();
    const behind = wall() - (origin + sinceOrigin);
    if (Math.abs(behind) >= jumpMs) origin += behind;
    const micros = BigInt(Math.round((origin + sinceOrigin) * 1_000));
    return { seconds: micros / 1_000_000n, nanos: Number(micros % 1_000_000n) * 1_000 };
  };
}
