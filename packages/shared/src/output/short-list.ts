/** More names make no sentence, and sentences are in messages whose size has a bound. */
const maxNames = 10;

/** "a, b", and of many: "a, b, c, d, e, f, g, h, i, j and 23 more". */
export function shortList(names: readonly string[]): string {
  const named = names.slice(0, maxNames).join(", ");
  return names.length <= maxNames ? named : `${named} and ${names.length - maxNames} more`;
}
