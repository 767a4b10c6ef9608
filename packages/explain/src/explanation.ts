/** What is known of a step that may have failed. Each part may be empty. */
export type StepOutput = {
  /** All that it printed, or the end of it. */
  readonly output: string;
  /** How the tool summarizes the failure, such as `exit status 1`. A step with a summary has failed. */
  readonly summary?: string | undefined;
  /** The kind of step, such as `build` or `deploy`. */
  readonly step?: string | undefined;
};

export type Explanation = {
  /** The line that a colleague would quote, without colours. */
  readonly cause: string;
  /** A short class, such as `compile error`. The list is open. */
  readonly reason: string;
  readonly file: string | null;
  readonly line: number | null;
  /** What the tool recommends for this failure, or null. */
  readonly advice: string | null;
};
