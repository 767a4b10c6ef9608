import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { compareTimestamps } from "@tapedeck/shared/time/timestamp";

/** When a list was observed: what an observation shows has happened since the one before. */
export class ObservationTimes {
  #last: Timestamp | undefined;
  /** The one before, which counts when the last observation comes again. */
  #secondLast: Timestamp | undefined;
  /** Known from events only: there has been no observation since. */
  #isResumed = false;
  #isFirst = false;

  /** The last successful observation before this moment. */
  before(at: Timestamp): Timestamp | undefined {
    return firstBefore(at, this.#last, this.#secondLast);
  }

  /** The last one before this moment that is known to have shown the items as they are remembered. */
  sureBefore(at: Timestamp): Timestamp | undefined {
    // The last observation with events may have held back something else, unless it was the first of all. What the one
    // before held back was reported by then.
    const mayHold = this.#isResumed && !(this.#isFirst && this.#secondLast === undefined);
    return mayHold ? firstBefore(at, this.#secondLast) : this.before(at);
  }

  observed(at: Timestamp): void {
    this.#secondLast = this.before(at);
    this.#last = at;
    this.#isResumed = false;
  }

  /** Takes in an event of an observation by the recorder before. `isFirst`: of the first observation of all. */
  resume(at: Timestamp, isFirst: boolean): void {
    this.#isResumed = true;
    this.#isFirst ||= isFirst;
    // Events come in the order of their observations, but an event about something held back or missed has an earlier time.
    const [latest = at, ...others] = [this.#last, this.#secondLast, at]
      .flatMap((timestamp) => timestamp ?? [])
      .sort((a, b) => compareTimestamps(b, a));
    this.#last = latest;
    this.#secondLast = firstBefore(latest, ...others);
  }
}

/** The first of these that is earlier than `at`. Clocks jump, and an observation may come twice. */
function firstBefore(at: Timestamp, ...observations: readonly (Timestamp | undefined)[]): Timestamp | undefined {
  return observations.find((timestamp) => timestamp !== undefined && compareTimestamps(timestamp, at) < 0);
}
