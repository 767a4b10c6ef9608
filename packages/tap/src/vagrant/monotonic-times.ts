import { nanosOfTimestamp, type Timestamp, timestampOfNanos } from "@tapedeck/shared/time/timestamp";

/**
 * The clock's time. Where it is not later than the previous one, as after the clock was set back, time goes on from there
 * at its usual pace, and by one nanosecond at least: ages of what was recorded grow also then. `steady`: a clock that
 * never goes back, in ms.
 */
export function monotonicTimes(
  clock: () => Timestamp,
  steady: () => number = () => performance.now(),
): () => Timestamp {
  let last = 0n;
  let lastAt = 0;
  return () => {
    const time = nanosOfTimestamp(clock());
    const at = steady();
    const passed = BigInt(Math.floor((at - lastAt) * 1e6));
    lastAt = at;
    last = time > last ? time : last + (passed > 1n ? passed : 1n);
    return timestampOfNanos(last);
  };
}
