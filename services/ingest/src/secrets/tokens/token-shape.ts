/** So many characters of an alphabet, which is written as inside of a regular expression's brackets: "0-9A-Z_". */
export type Run = readonly [alphabet: string, least: number, most: number];

/** What is known of the looks of one kind of token. */
export type TokenShape = {
  /** As the rule set calls it. */
  readonly id: string;
  /** Begins with fixed text; then runs of characters, and fixed text between them. */
  readonly parts: readonly [prefix: string, ...rest: (string | Run)[]];
  /** It stands alone: next to letters and digits it is something else. */
  readonly alone: boolean;
  /** It only counts after one of these words, in lower case; none: always. */
  readonly near: readonly string[];
};
