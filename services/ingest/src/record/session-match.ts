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
  let contradicted = false;
  for (const [channel, { shas, fingerprint, complete }] of spoken) {
    const known = newest.fingerprints.get(channel);
    if (known === undefined) continue;
    // Anywhere in the repeat: its smallest message may differ when an earlier connection saw only a part of it at first.
    if (shas.has(known)) return "same";
    if (complete && fingerprint !== undefined) contradicted = true;
  }
  if (contradicted) return "new";
  const hasOne = [...spoken.values()].some(({ fingerprint }) => fingerprint !== undefined);
  if (newest.open && newest.fingerprints.size === 0 && !hasOne) return "same";
  return final || newest.fingerprints.size === 0 ? "new" : "wait";
}
