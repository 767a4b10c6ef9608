/** The frames that a connection has received on one channel so far. */
export type ReceivedChannel = {
  /** Hashes of every frame. */
  readonly shas: ReadonlySet<string>;
  /** SHA-256 of the frame with the smallest time; undefined if none has a time. */
  readonly fingerprint: string | undefined;
  /** The channel repeats everything since the process began, so what is missing from it never existed. */
  readonly complete: boolean;
};

export type KnownFingerprints = {
  readonly open: boolean;
  /** SHA-256 by channel. */
  readonly fingerprints: ReadonlyMap<string, string>;
};

/**
 * Decides whether a connection belongs to the source's newest session (open, or ended wrongly) or to a new one. "wait":
 * the frames received so far prove neither. With `final` there is nothing more to wait for.
 */
export function matchSession(
  newest: KnownFingerprints | undefined,
  received: ReadonlyMap<string, ReceivedChannel>,
  final: boolean,
): "same" | "new" | "wait" {
  if (newest === undefined) return "new";
  if (isRepeatOf(newest, received)) return "same";
  const isContradicted = [...received].some(
    ([channel, { fingerprint, complete }]) => complete && fingerprint !== undefined && newest.fingerprints.has(channel),
  );
  if (isContradicted) return "new";
  const hasOne = [...received.values()].some(({ fingerprint }) => fingerprint !== undefined);
  if (newest.open && newest.fingerprints.size === 0 && !hasOne) return "same";
  return final || newest.fingerprints.size === 0 ? "new" : "wait";
}

/**
 * Whether a session's fingerprint is among the received frames. Its position does not matter: the first frame may differ
 * if an earlier connection received only a part at first.
 */
export function isRepeatOf(
  { fingerprints }: Pick<KnownFingerprints, "fingerprints">,
  received: ReadonlyMap<string, Pick<ReceivedChannel, "shas">>,
): boolean {
  return [...received].some(([channel, { shas }]) => {
    const known = fingerprints.get(channel);
    return known !== undefined && shas.has(known);
  });
}
