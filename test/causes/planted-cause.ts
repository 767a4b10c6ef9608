import type { Event } from "@tapedeck/proto/tapedeck/v1/event";

/** A failure with the difference that an experienced developer calls its cause. */
export type PlantedCause = {
  readonly name: string;
  /** What is asked: the side that failed and, if it is not the same source, the good one. */
  readonly left: string;
  readonly right?: string;
  /** So many of the events were there when the good side was good; then it is the same source. */
  readonly rightAfter?: number;
  readonly events: readonly Event[];
  readonly cause: {
    readonly kinds: readonly string[];
    readonly subject?: RegExp;
    /** In the sentence, in one of the values or, of a failure, in the lines of output that are shown with it. */
    readonly text?: RegExp;
  };
};
