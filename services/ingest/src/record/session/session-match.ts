/** What a connection has said on one channel so far. */
export type Spoken = {
  /** SHA-256 of every message, as it would be recorded. */
  readonly shas: ReadonlySet<string>;
  /** Of the message with the smallest time; undefined when none has a time. */
  readonly fingerprint: string | undefined;
  /** The channel repeats everything since the process began, so what is missing from it never was. */
  readonly complete: boolean;
};

export type KnownFingerprints = {
  readonly open: boolean;
  /** SHA-256 by channel. */
  readonly fingerprints: ReadonlyMap<string, string>;
};

/**
 * Whether a connection belongs to the source's newest session (open, or ended wrongly) or to a new one. "wait": what was
 * said so far proves neither. With `final` nothing more is waited for.
 */
export function matchSession(
  newest: KnownFingerprints | undefined,
  spoken: ReadonlyMap<string, Spoken>,
  final: boolean,
): "same" | "new" | "wait" {
  if (newest === undefined) return "new";
  if (isRepeatOf(newest, spoken)) return "same";
  const isContradicted = [...spoken].some(
    ([channel, { fingerprint, complete }]) => complete && fingerprint !== undefined && newest.fingerprints.has(channel),
  );
  if (isContradicted) return "new";
  const hasOne = [...spoken.values()].some(({ fingerprint }) => fingerprint !== undefined);
  if (newest.open && newest.fingerprints.size === 0 && !hasOne) return "same";
  return final || newest.fingerprints.size === 0 ? "new" : "wait";
}

/**
 * Whether a session's fingerprint is among what was said. Anywhere: what comes first may differ when an earlier
 * connection saw only a part at first.
 */
export function isRepeatOf(
  { fingerprints }: Pick<KnownFingerprints, "fingerprints">,
  spoken: ReadonlyMap<string, Spoken>,
): boolean {
  return [...spoken].some(([channel, { shas }]) => {
    const known = fingerprints.get(channel);
    return known !== undefined && shas.has(known);
  });
}
