import type { Moment } from "@tapedeck/shared/time/moment";
import { compareMoments } from "@tapedeck/shared/time/moment";

/** When a channel was looked at, for what must have happened since. */
export type ObservationTimes = {
  /** The last good look before this moment. */
  readonly before: (at: Moment) => Moment | undefined;
  /** The last one before it that is known to have seen things as they are remembered. */
  readonly sureBefore: (at: Moment) => Moment | undefined;
  readonly was: (at: Moment) => void;
  /** An event of a look that another watcher saw; `isFirst`: of the first look of all. */
  readonly told: (at: Moment, isFirst: boolean) => void;
};

export function observationTimes(): ObservationTimes {
  let last: Moment | undefined;
  /** For a look that comes again. */
  let secondLast: Moment | undefined;
  /** Known from events only: no look since. */
  let isRead = false;
  let isFirst = false;

  const before = (at: Moment) => earlier(at, last, secondLast);
  return {
    before,
    sureBefore(at) {
      // The last look that told something may have held back something else, unless it was the first of all; what was
      // held back before it was told by then.
      return isRead && !(isFirst && secondLast === undefined) ? earlier(at, secondLast) : before(at);
    },
    was(at) {
      secondLast = before(at);
      last = at;
      isRead = false;
    },
    told(at, first) {
      isRead = true;
      isFirst ||= first;
      // Events come in the order of their looks, but what was held back or missed tells of an earlier one.
      const [latest = at, ...others] = [last, secondLast, at]
        .flatMap((moment) => moment ?? [])
        .sort((a, b) => compareMoments(b, a));
      last = latest;
      secondLast = earlier(latest, ...others);
    },
  };
}

/** The first of these that was before: clocks jump, and a look may come twice. */
function earlier(at: Moment, ...looks: readonly (Moment | undefined)[]): Moment | undefined {
  return looks.find((look) => look !== undefined && compareMoments(look, at) < 0);
}
