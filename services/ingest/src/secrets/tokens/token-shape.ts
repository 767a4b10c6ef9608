/** A run of characters of an alphabet, which is written as between a regular expression's brackets: "0-9A-Z_". */
export type Run = readonly [alphabet: string, least: number, max: number];

/** The shape of one kind of token. */
export type TokenShape = {
  /** Its name in the rule set. */
  readonly id: string;
  /** Fixed text, then runs of characters with fixed text between them. */
  readonly parts: readonly [prefix: string, ...rest: (string | Run)[]];
  /** The token stands alone: next to letters and digits it is something else. */
  readonly alone: boolean;
  /** The token counts only after one of these words, in lower case; none: always. */
  readonly near: readonly string[];
};
