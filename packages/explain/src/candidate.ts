/** Kinds in the order of their worth: what a program concludes about code is worth more than what it prints about itself. */
export type Kind = "test" | "diagnostic" | "exception" | "error" | "phrase" | "hollow";

export type Candidate = {
  readonly index: number;
  readonly kind: Kind;
  readonly score: number;
  /** The class that the shape alone decides. */
  readonly reason: string | undefined;
};
