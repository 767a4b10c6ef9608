import { nanosOfTimestamp, type Timestamp, timestampOfNanos } from "@tapedeck/shared/time/timestamp";

/** The clock's time, or one nanosecond after the previous time if the clock has not advanced. */
export function monotonicTimes(clock: () => Timestamp): () => Timestamp {
  let last = 0n;
  return () => {
    const time = nanosOfTimestamp(clock());
    last = time > last ? time : last + 1n;
    return timestampOfNanos(last);
  };
}
