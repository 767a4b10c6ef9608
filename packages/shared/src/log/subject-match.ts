/** Decides whether a subject matches any of the NATS filter subjects (`*`: one token, `>`: one or more); no filter: all. */
export function subjectMatcher(filters: readonly string[]): (tokens: readonly string[]) => boolean {
  if (filters.length === 0) return () => true;
  const split = filters.map((filter) => filter.split("."));
  return (tokens) => split.some((filter) => covers(filter, tokens));
}

/** Whether a subject matches one NATS filter subject. */
export function subjectMatches(filter: string, subject: string): boolean {
  return covers(filter.split("."), subject.split("."));
}

/** The same set of subjects without repeats and without those that another one covers: JetStream refuses overlaps. */
export function withoutCovered(filters: readonly string[]): readonly string[] {
  const unique = [...new Set(filters)];
  const split = unique.map((filter) => filter.split("."));
  return unique.filter((_, i) => !split.some((wide, j) => j !== i && covers(wide, split[i] as string[])));
}

function covers(wide: readonly string[], narrow: readonly string[]): boolean {
  for (let i = 0; i < wide.length; i++) {
    const token = wide[i];
    if (token === ">") return narrow.length > i;
    if (i >= narrow.length || narrow[i] === ">") return false;
    if (token !== "*" && token !== narrow[i]) return false;
  }
  return wide.length === narrow.length;
}
