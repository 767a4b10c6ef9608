import type { Moment } from "@tapedeck/shared/time/moment";
import { msBetween } from "@tapedeck/shared/time/moment";
import type { Fact } from "../fact.ts";

/** Knows when all that a watcher remembers has to be told anew, so that who reads the log can begin there. */
export type DescriptionDue = {
  readonly told: (fact: Pick<Fact, "detail">, at: Moment | undefined) => void;
  readonly isDue: (at: Moment) => boolean;
  /** It was told. */
  readonly given: () => void;
};

/**
 * After so many events; and before half of the time has gone by that the log keeps text, since the first text after the
 * last description: how much a job has printed is known from its text alone, and would begin anew without it.
 */
export function newDescriptionDue(events: number, textTtl: number | undefined): DescriptionDue {
  let count = 0;
  let textSince: Moment | undefined;
  return {
    told({ detail }, at) {
      count += 1;
      if (detail?.$case === "text") textSince ??= at;
    },
    isDue(at) {
      if (count >= events) return true;
      return textTtl !== undefined && textSince !== undefined && msBetween(textSince, at) >= textTtl * 500;
    },
    given() {
      count = 0;
      textSince = undefined;
    },
  };
}
