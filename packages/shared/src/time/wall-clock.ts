import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";

/** Ms since 1970, and ms since some moment: the first is what people's clocks say, the second has finer steps. */
export type Clocks = { readonly wall: () => number; readonly steady: () => number };

const theirs: Clocks = { wall: Date.now, steady: () => performance.now() };
/** Less is the wall clock being adjusted bit by bit, or read between two of its steps. */
const jumpMs = 1_000;

/** Tells the time in microseconds; follows the wall clock where it jumps (the steady one may stand still in a sleep). */
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
