import type { Event } from "@tapedeck/proto/tapedeck/v1/event";

/** A failure with the difference that an experienced developer calls its cause. */
export type PlantedCause = {
  readonly name: string;
  /** The compared sides: the side that failed and, if it is another source, the good one. */
  readonly left: string;
  readonly right?: string;
  /** The number of events when the good side was good; the source is then the same. */
  readonly rightAfter?: number;
  readonly events: readonly Event[];
  readonly cause: {
    readonly kinds: readonly string[];
    readonly subject?: RegExp;
    /**
     * Matches in the sentence, in one of the values or, for a failure, in the lines of output that are shown with it.
     */
    readonly text?: RegExp;
  };
};
