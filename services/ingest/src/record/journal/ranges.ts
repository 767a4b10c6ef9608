/** Ordinals, both included. */
export type PositionRange = { readonly first: number; readonly last: number };

/** What of a range is in none of the others, in order. */
export function without(range: PositionRange, others: readonly PositionRange[]): readonly PositionRange[] {
  let left: readonly PositionRange[] = [range];
  for (const other of others) {
    left = left.flatMap(({ first, last }) => {
      if (other.last < first || other.first > last) return [{ first, last }];
      const before = { first, last: other.first - 1 };
      const after = { first: other.last + 1, last };
      return [before, after].filter((part) => part.first <= part.last);
    });
  }
  return left;
}

/** Rising ordinals as few ranges. */
export function rangesOf(ordinals: Iterable<number>): readonly PositionRange[] {
  const ranges: { first: number; last: number }[] = [];
  for (const ordinal of ordinals) {
    const current = ranges.at(-1);
    if (current !== undefined && ordinal === current.last + 1) current.last = ordinal;
    else ranges.push({ first: ordinal, last: ordinal });
  }
  return ranges;
}

export function sizeOf(ranges: readonly PositionRange[]): number {
  return ranges.reduce((sum, { first, last }) => sum + last - first + 1, 0);
}
